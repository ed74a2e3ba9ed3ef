from __future__ import annotations

import pytest
import torch

from likely.likelihoods import Normal
from likely.likelihoods.base import Likelihood


@pytest.mark.parametrize("normal", [Normal(), Normal(scale=0.5), Normal(scale="input")])
@pytest.mark.parametrize("level", [0.0, 1e9])
def test_rows_of_columns_are_the_sum_of_their_columns(normal, level):
    """Compiled, differentiable and default; far from 0 too, where a product of squares would have no digits left."""
    generator = torch.Generator().manual_seed(0)
    size = normal.size(normal.example_target())
    eta = torch.randn(5, 3, size, generator=generator, dtype=torch.float64)
    eta[..., 0] += level
    y = torch.randn(40, 3, generator=generator, dtype=torch.float64) + level
    expected = Likelihood.row_log_prob(normal, eta, y)
    torch.testing.assert_close(normal.row_log_prob(eta, y), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(normal.row_log_prob(eta, y[:, [2, 1, 0]].flip(1)), expected, rtol=1e-12, atol=1e-12)
    leaf = eta.clone().requires_grad_()
    learned = normal.row_log_prob(leaf, y)
    torch.testing.assert_close(learned.detach(), expected, rtol=1e-12, atol=1e-12)
    (slope,) = torch.autograd.grad(learned.sum(), leaf)
    (other,) = torch.autograd.grad(Likelihood.row_log_prob(normal, leaf, y).sum(), leaf)
    torch.testing.assert_close(slope, other, rtol=1e-9, atol=1e-9)
