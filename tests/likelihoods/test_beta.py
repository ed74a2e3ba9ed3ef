from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError
from likely.likelihoods import Beta


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 2, dtype=torch.float64), torch.rand(50, dtype=torch.float64)
    mean, precision = torch.sigmoid(eta[:, 0]).numpy(), eta[:, 1].exp().numpy()
    expected = stats.beta(mean * precision, (1 - mean) * precision).logpdf(y.numpy())
    np.testing.assert_allclose(Beta().log_prob(eta, y).numpy(), expected, rtol=1e-9, atol=1e-12)


def test_mean_and_variance(generator):
    eta = torch.randn(20, 2, dtype=torch.float64)
    mean, precision = torch.sigmoid(eta[:, 0]), eta[:, 1].exp()
    distribution = Beta().distribution(eta)
    torch.testing.assert_close(distribution.mean, mean)
    torch.testing.assert_close(distribution.variance, mean * (1 - mean) / (1 + precision))


def test_estimate_agrees_with_scipy():
    y = stats.beta(2.0, 5.0).rvs(200, random_state=0)
    a, b, _, _ = stats.beta.fit(y, floc=0, fscale=1)
    logit, log_precision = Beta().weighted_mle(torch.tensor(y), torch.ones(200, dtype=torch.float64)).tolist()
    np.testing.assert_allclose([logit, log_precision], [np.log(a / b), np.log(a + b)], rtol=1e-5)


def test_samples_never_touch_the_ends(generator):
    y = Beta(precision=1e-3).distribution(torch.zeros(2000, 1)).sample()
    assert bool(((y > 0) & (y < 1)).all())
    Beta().check(y)


def test_the_ends_are_refused():
    with pytest.raises(
        DataError, match=r"y has a value outside the support \(1.0 at row 1\); Beta needs numbers strictly"
    ):
        Beta().check(torch.tensor([0.5, 1.0]))
