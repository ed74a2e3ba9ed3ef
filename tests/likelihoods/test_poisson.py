from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError
from likely.likelihoods import Poisson


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 1, dtype=torch.float64), torch.randint(0, 20, (50,))
    expected = stats.poisson(eta[:, 0].exp().numpy()).logpmf(y.numpy())
    np.testing.assert_allclose(Poisson().log_prob(eta, y).numpy(), expected, rtol=1e-10)


def test_slope_of_the_nll_is_mean_minus_y_times_x(generator):
    x, y = torch.randn(30, 4, dtype=torch.float64), torch.randint(0, 6, (30,)).double()
    w = torch.randn(4, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(-Poisson().log_prob((x @ w).unsqueeze(-1), y).sum(), w)
    torch.testing.assert_close(slope, (((x @ w).exp() - y) @ x).detach())


@pytest.mark.parametrize("extreme", [50.0, 100.0, 1e4])
def test_an_overflowing_rate_leads_back(extreme):
    eta = torch.tensor([[extreme]], requires_grad=True)
    log_prob = Poisson().log_prob(eta, torch.tensor([3.0]))
    (slope,) = torch.autograd.grad(log_prob.sum(), eta)
    assert math.isfinite(log_prob.item())
    assert -math.inf < slope.item() < 0


def test_only_zeros_have_a_finite_estimate():
    assert math.isfinite(Poisson().weighted_mle(torch.zeros(5), torch.ones(5)).item())


def test_a_negative_count_is_named():
    y = torch.ones(20)
    y[17] = -1
    message = "y has a negative value (-1.0 at row 17); Poisson needs counts 0, 1, 2, …."
    with pytest.raises(DataError, match=re.escape(message)):
        Poisson().check(y)
    with pytest.raises(DataError, match=r"y has a value that is not an integer \(0.3 at row 1\)"):
        Poisson().check(torch.tensor([[1.0, 2.0], [0.3, 1.0]]))
    with pytest.raises(DataError, match=r"target has a negative value \(-2 at row 0\)"):
        Poisson().check(torch.tensor([-2]), name="target")
