from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import SpecError
from likely.likelihoods import NegativeBinomial, Poisson


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 2, dtype=torch.float64), torch.randint(0, 20, (50,))
    total = (-eta[:, 1]).exp().numpy()
    expected = stats.nbinom(total, total / (total + eta[:, 0].exp().numpy())).logpmf(y.numpy())
    np.testing.assert_allclose(NegativeBinomial().log_prob(eta, y).numpy(), expected, rtol=1e-10)


def test_variance_is_the_mean_and_its_square_times_the_dispersion(generator):
    eta = torch.randn(20, 2, dtype=torch.float64)
    mean, dispersion = eta[:, 0].exp(), eta[:, 1].exp()
    distribution = NegativeBinomial().distribution(eta)
    torch.testing.assert_close(distribution.mean, mean)
    torch.testing.assert_close(distribution.variance, mean + dispersion * mean.square())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("log_dispersion", [-25.0, -39.0, -1e3])
def test_no_dispersion_is_the_poisson(dtype, log_dispersion):
    y = torch.arange(15, dtype=dtype)
    eta = torch.tensor([1.5, log_dispersion], dtype=dtype).expand(15, 2)
    poisson = Poisson().log_prob(eta[:, :1], y)
    torch.testing.assert_close(NegativeBinomial().log_prob(eta, y), poisson, atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(NegativeBinomial().distribution(eta).log_prob(y), poisson, atol=2e-4, rtol=1e-4)


def test_less_dispersed_than_a_poisson_still_has_an_estimate():
    y = torch.tensor([4.0, 5.0, 6.0, 5.0])
    estimate = NegativeBinomial().weighted_mle(y, torch.ones(4))
    assert bool(estimate.isfinite().all())
    assert estimate[0].exp().item() == pytest.approx(5.0, rel=1e-5)
    assert estimate[1].item() < -10


def test_dispersion_is_checked():
    with pytest.raises(SpecError, match="dispersion must be"):
        NegativeBinomial(dispersion="fixed")
