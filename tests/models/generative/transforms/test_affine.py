"""Affine maps: shift and scale, and the limit of the scale."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.models.generative.transforms import Affine


def test_affine_scales_stay_within_their_limit():
    _, log_gradient = Affine(1.5).forward(torch.ones(2, 1), torch.tensor([[0.0, 1e6], [0.0, -1e6]]))
    assert log_gradient.ravel().tolist() == [1.5, -1.5]


def test_the_log_gradient_is_that_of_autograd_and_the_inverse_closed():
    raw = torch.randn(7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.linspace(-3, 3, 21, dtype=torch.float64).reshape(7, 3).requires_grad_()
    z, log_gradient = Affine().forward(x, raw)
    (gradient,) = torch.autograd.grad(z.sum(), x)
    torch.testing.assert_close(gradient.log(), log_gradient)
    torch.testing.assert_close(Affine().inverse(z, raw), x)


def test_a_limit_below_0_is_named():
    with pytest.raises(SpecError, match="limit must be above 0"):
        Affine(limit=-1.0)
