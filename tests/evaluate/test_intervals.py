import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from likely import Regressor
from likely.core.errors import DataError
from likely.evaluate import coverage
from likely.likelihoods import Normal


def test_right_intervals_cover_what_they_promise(known, draws):
    """Each of 4 z-scores is within 5: a false alarm in 2 of 10⁶ seeds."""
    result = coverage(known(), *draws(20_000))
    assert (np.abs(result.covered - result.levels) < 5 * result.standard_error).all()
    np.testing.assert_allclose(result.standard_error, np.sqrt(result.levels * (1 - result.levels) / 20_000))
    np.testing.assert_allclose(result.width[2], 2 * 1.6448536, rtol=1e-5)


def test_half_the_scale_covers_as_a_normal_does(known, draws):
    """P(|z| < 0.8224) = 0.5892 for the 90 % interval of a forecast with half the true scale.

    20,000 rows are within 5 standard errors, but for 1 of 10⁶ seeds.
    """
    result = coverage(known(scale=0.5), *draws(20_000), levels=[0.9])
    assert result.covered[0] == pytest.approx(0.5892, abs=5 * 0.0035)


def test_missing_targets_do_not_count(known, draws):
    X, y = draws(100)
    y[:30] = np.nan
    assert coverage(known(), X, y).count == 70
    np.testing.assert_array_equal(coverage(known(), X, y).covered, coverage(known(), X[30:], y[30:]).covered)


def test_it_reads_as_a_sentence(known, draws):
    text = str(coverage(known(), *draws(1000), levels=0.9))
    assert text.startswith("90% interval: ")
    assert "(± 0.9%), mean width 3.29" in text


def test_errors(known, draws):
    X, y = draws(10)
    with pytest.raises(DataError, match="levels must lie strictly between 0 and 1"):
        coverage(known(), X, y, levels=[0.5, 1.0])
    with pytest.raises(DataError, match="Coverage needs a model with predict_interval; LinearRegression has none"):
        coverage(LinearRegression(), X, y)
    with pytest.raises(DataError, match=r"y has shape \(10, 1\); the intervals have \(10,\)"):
        coverage(known(), X, y[:, None])


def test_a_fitted_heteroscedastic_regressor_covers_new_data(seed):
    """4 standard errors of 2000 new rows, plus 1 % for what 2000 training rows leave unknown of σ(x)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(4000, 1))
    y = X[:, 0] + np.exp(X[:, 0] - 1) * rng.normal(size=4000)
    model = Regressor(likelihood=Normal(scale="input")).fit(X[:2000], y[:2000])
    result = coverage(model, X[2000:], y[2000:])
    assert (np.abs(result.covered - result.levels) < 4 * result.standard_error + 0.01).all()
