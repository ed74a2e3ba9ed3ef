"""The likelihood-ratio test: equal to statsmodels, of its level, and refused where χ² is not its distribution."""

import numpy as np
import pytest
from scipy.stats import binom

from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.evaluate import likelihood_ratio_test
from likely.inference import Exact
from likely.likelihoods import Poisson
from likely.networks import MLP

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X @ [1.0, 0.4, 0.0] + RNG.normal(size=80)


def test_it_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    large, small = sm.OLS(Y, sm.add_constant(X)).fit(), sm.OLS(Y, sm.add_constant(X[:, :1])).fit()
    statistic, p_value, df = large.compare_lr_test(small)
    ours = likelihood_ratio_test(Regressor().fit(X[:, :1], Y), Regressor().fit(X, Y))
    assert (ours.statistic, ours.p_value) == (pytest.approx(statistic), pytest.approx(p_value))
    assert (ours.df, ours.left_out) == (df, ("x1", "x2"))


def test_it_rejects_a_right_small_model_as_often_as_it_says(seed):
    """12 tests at level 0.2; the binomial's quantiles give a false alarm once in 10,000."""
    random = np.random.default_rng(seed)
    rejected = 0
    for _ in range(12):
        x = random.normal(size=(60, 2))
        y = random.poisson(np.exp(0.5 * x[:, 0]))
        small, large = Regressor(Poisson()).fit(x[:, :1], y), Regressor(Poisson()).fit(x, y)
        rejected += likelihood_ratio_test(small, large).p_value < 0.2
    low, high = binom.ppf([5e-5, 1 - 5e-5], 12, 0.2)
    assert low <= rejected <= high


def test_what_is_not_nested_or_not_at_its_maximum_is_refused():
    large = Regressor().fit(X, Y)
    small = Regressor().fit(X[:, :1], Y)
    with pytest.raises(DataError, match="small has 'x1', which large has not"):
        likelihood_ratio_test(large, small)
    with pytest.raises(DataError, match="no more parameters"):
        likelihood_ratio_test(large, large)
    with pytest.raises(DataError, match="fitted on 40 rows and large on 80"):
        likelihood_ratio_test(Regressor().fit(X[:40, :1], Y[:40]), large)
    with pytest.raises(DataError, match="not nested: are their rows, targets"):
        likelihood_ratio_test(Regressor().fit(X[:, :1], Y), Regressor().fit(X, 10 * Y))
    counts = RNG.poisson(np.exp(X[:, 0]))
    with pytest.raises(DataError, match="the test is about terms of one family"):
        likelihood_ratio_test(Regressor(Poisson()).fit(X[:, :1], counts), Regressor().fit(X, counts))
    with pytest.raises(DataError, match="with an offset or an exposure and the other without"):
        likelihood_ratio_test(Regressor().fit(X[:, :1], Y), Regressor().fit(X, Y, offset=Y))
    with pytest.raises(SpecError, match="pulls the coefficients towards 0"):
        likelihood_ratio_test(Regressor(prior="normal(1.0)").fit(X[:, :1], Y), large)
    with pytest.raises(SpecError, match="coefficients of a linear model"):
        likelihood_ratio_test(small, Regressor(network=MLP((2,)), inference="map(epochs=1)").fit(X, Y))
    with pytest.raises(SpecError, match="is a posterior, whose evidence"):
        likelihood_ratio_test(Regressor(prior="normal(1.0)", inference=Exact("full")).fit(X[:, :1], Y), large)
    with pytest.raises(SpecError, match="must be a fitted Regressor"):
        likelihood_ratio_test(3, large)


def test_tables_of_large_fits_will_do():
    labels = (Y > 0).astype(int)
    small, large = Classifier().fit(X[:, :2], labels), Classifier().fit(X, labels)
    by_tables = likelihood_ratio_test(small.summary(X[:, :2], labels), large.summary(X, labels))
    assert by_tables.p_value == pytest.approx(likelihood_ratio_test(small, large).p_value)
    assert "on 1 df" in str(by_tables)
