from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely import Regressor
from likely.core.errors import DataError
from likely.likelihoods import LogNormal, Normal


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 2, dtype=torch.float64), torch.rand(50, dtype=torch.float64) + 0.1
    expected = stats.lognorm(s=eta[:, 1].exp().numpy(), scale=eta[:, 0].exp().numpy()).logpdf(y.numpy())
    np.testing.assert_allclose(LogNormal().log_prob(eta, y).numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_regression_is_least_squares_of_the_logarithm(unit):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = np.exp(X @ [0.5, -1.0] + 0.3 * random.normal(size=60))
    model, plain = Regressor(LogNormal()).fit(X, unit * y), Regressor().fit(X, np.log(unit * y))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.log_prob(X, unit * y), plain.log_prob(X, np.log(unit * y)) - np.log(unit * y))
    variance = plain.predict_dist(X).variance.numpy()
    np.testing.assert_allclose(model.predict(X), np.exp(plain.predict(X) + variance / 2), rtol=1e-6)
    lower, upper = model.predict_interval(X, 0.8)
    np.testing.assert_allclose(np.log(np.stack([lower, upper])), np.stack(plain.predict_interval(X, 0.8)), rtol=1e-6)


def test_the_mean_and_the_median_of_equal_values_are_theirs():
    estimate = LogNormal().weighted_mle(torch.full((10,), 5.0), torch.ones(10))
    assert LogNormal().distribution(estimate).mean.item() == pytest.approx(5.0, rel=1e-5)
    assert estimate[0].item() == Normal().weighted_mle(torch.full((10,), 5.0).log(), torch.ones(10))[0].item()


def test_zero_is_refused():
    with pytest.raises(DataError, match=r"0\.0 at row 1\); LogNormal needs positive numbers"):
        LogNormal().check(torch.tensor([1.0, 0.0]))
