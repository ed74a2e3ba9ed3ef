from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError
from likely.likelihoods import Exponential


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 1, dtype=torch.float64), torch.rand(50, dtype=torch.float64)
    expected = stats.expon(scale=eta[:, 0].exp().numpy()).logpdf(y.numpy())
    np.testing.assert_allclose(Exponential().log_prob(eta, y).numpy(), expected, rtol=1e-12)


def test_estimate_is_the_mean():
    estimate = Exponential().weighted_mle(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
    assert estimate.exp().item() == pytest.approx(2.0)
    assert math.isfinite(Exponential().weighted_mle(torch.zeros(3), torch.ones(3)).item())


def test_negative_values_are_refused():
    with pytest.raises(
        DataError, match=r"y has a negative value \(-0.5 at row 0\); Exponential needs numbers 0 or above\."
    ):
        Exponential().check(torch.tensor([-0.5]))
