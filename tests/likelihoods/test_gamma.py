from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError
from likely.likelihoods import Exponential, Gamma


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 2, dtype=torch.float64), torch.rand(50, dtype=torch.float64) + 0.1
    mean, concentration = eta[:, 0].exp().numpy(), eta[:, 1].exp().numpy()
    expected = stats.gamma(concentration, scale=mean / concentration).logpdf(y.numpy())
    np.testing.assert_allclose(Gamma().log_prob(eta, y).numpy(), expected, rtol=1e-9)


def test_concentration_one_is_the_exponential(generator):
    eta, y = torch.randn(50, 1, dtype=torch.float64), torch.rand(50, dtype=torch.float64) + 0.1
    torch.testing.assert_close(Gamma(concentration=1.0).log_prob(eta, y), Exponential().log_prob(eta, y))


def test_large_concentration_is_a_normal_to_first_order():
    # y = μ (1 + z/√α): the density nears that of N(μ, μ²/α) as α grows
    log_concentration = 25.0
    z = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    y = 3 * (1 + z * np.exp(-log_concentration / 2))
    eta = torch.tensor([np.log(3.0), log_concentration], dtype=torch.float64).expand(3, 2)
    expected = stats.norm.logpdf(z.numpy()) - np.log(3.0) + log_concentration / 2
    np.testing.assert_allclose(Gamma().log_prob(eta, y).numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_estimate_agrees_with_scipy(generator, unit):
    y = stats.gamma(2.5, scale=0.7).rvs(200, random_state=0)
    concentration, _, scale = stats.gamma.fit(y, floc=0)
    estimate = Gamma().weighted_mle(torch.tensor(unit * y), torch.ones(200, dtype=torch.float64)).exp().numpy()
    np.testing.assert_allclose(estimate, [unit * concentration * scale, concentration], rtol=1e-6)


def test_equal_values_have_a_finite_estimate():
    for dtype in (torch.float32, torch.float64):
        estimate = Gamma().weighted_mle(torch.full((10,), 5.0, dtype=dtype), torch.ones(10, dtype=dtype))
        assert bool(estimate.isfinite().all())
        assert estimate[0].exp().item() == pytest.approx(5.0, rel=1e-6)


def test_zero_is_refused():
    with pytest.raises(
        DataError, match=r"y has a value outside the support \(0.0 at row 1\); Gamma needs positive numbers\."
    ):
        Gamma().check(torch.tensor([1.0, 0.0]))
