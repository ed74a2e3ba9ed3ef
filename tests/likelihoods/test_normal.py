from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError, SpecError
from likely.likelihoods import Normal


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 2, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
    expected = stats.norm(eta[:, 0].numpy(), eta[:, 1].exp().numpy()).logpdf(y.numpy())
    np.testing.assert_allclose(Normal().log_prob(eta, y).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_slope_of_the_nll_is_mean_minus_y_times_x(generator, scale):
    x, y, w = torch.randn(30, 4), torch.randn(30), torch.randn(4, requires_grad=True)
    nll = -Normal(scale=scale).log_prob((x @ w).unsqueeze(-1), y).sum()
    (slope,) = torch.autograd.grad(nll, w)
    torch.testing.assert_close(slope, ((x @ w - y) @ x).detach() / scale**2, atol=1e-4, rtol=1e-4)


def test_fixed_scale_is_least_squares(generator):
    y = torch.randn(40, dtype=torch.float64)
    mean = torch.linspace(-1, 1, 7, dtype=torch.float64)
    nll = -Normal(scale=2.0).log_prob(mean.reshape(-1, 1, 1), y).sum(-1)
    squares = (y - mean.unsqueeze(-1)).square().sum(-1)
    torch.testing.assert_close(nll.diff(), squares.diff() / 8)


def test_estimate_is_mean_and_standard_deviation(generator):
    y = 3 + 2 * torch.randn(100, dtype=torch.float64)
    location, log_scale = Normal().weighted_mle(y, torch.ones(100, dtype=torch.float64)).tolist()
    assert location == pytest.approx(np.mean(y.numpy()))
    assert math.exp(log_scale) == pytest.approx(np.std(y.numpy()))


def test_narrow_data_far_from_zero_keep_their_spread(generator):
    y = 1.7e9 + torch.randn(1000, dtype=torch.float64)
    estimate = Normal().weighted_mle(y, torch.ones(1000, dtype=torch.float64))
    assert estimate[1].exp().item() == pytest.approx(np.std(y.numpy() - 1.7e9), rel=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_baseline_follows_the_unit_of_y(generator, unit):
    y = 5 + torch.randn(50, dtype=torch.float64)
    weight = torch.ones(50, dtype=torch.float64)
    for scale in ("learned", "input", 0.5):
        offset, units = Normal(scale=scale).baseline(unit * y, weight)
        assert offset[0].item() == pytest.approx(unit * y.mean().item())
        assert units[0].item() == pytest.approx(unit * np.std(y.numpy()))
        assert units[1:].tolist() == [1.0] * (len(units) - 1)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), "known", None, True])
def test_scale_is_checked(scale):
    with pytest.raises(SpecError, match=r'scale must be "learned", "input" or a positive number'):
        Normal(scale=scale)


def test_nan_is_missing_and_infinity_refused():
    Normal().check(torch.tensor([0.0, torch.nan]))
    with pytest.raises(DataError, match=r"y has an infinite value \(-inf at row 2\); Normal needs real numbers\."):
        Normal().check(torch.tensor([0.0, 1.0, -torch.inf]))
