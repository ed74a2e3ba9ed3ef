"""Splines: the identity outside their domain, finite whatever their parameters."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.models.generative.transforms import Spline


def test_splines_are_finite_and_continuous_far_outside():
    spline = Spline(bins=6, bound=3.0)
    raw = 5 * torch.randn(1, spline.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = torch.tensor([-3.0, 3.0], dtype=torch.float64)
    beside = torch.cat([ends - 1e-9, ends, ends + 1e-9])[:, None]
    z, log_gradient = spline.forward(beside, raw)
    torch.testing.assert_close(z, beside, atol=1e-6, rtol=0)
    far = torch.tensor([-1e30, -3.5, 3.5, 1e30, 1e-300], dtype=torch.float64)[:, None]
    z, log_gradient = spline.forward(far, raw)
    torch.testing.assert_close(z[:4], far[:4])
    torch.testing.assert_close(log_gradient[:4], torch.zeros(4, 1, dtype=torch.float64), atol=1e-12, rtol=0)
    assert z.isfinite().all()
    assert spline.inverse(far, raw).isfinite().all()


@pytest.mark.parametrize("size", [50.0, 1e4])
def test_splines_bear_extreme_parameters(size):
    spline = Spline()
    random = torch.Generator().manual_seed(0)
    raw = (size * torch.randn(200, spline.size, generator=random)).requires_grad_()
    x = (8 * torch.randn(200, 1, generator=random)).requires_grad_()
    z, log_gradient = spline.forward(x, raw)
    (z.sum() + log_gradient.sum()).backward()
    assert all(part.isfinite().all() for part in (z, log_gradient, raw.grad, x.grad))
    assert spline.inverse(z, raw).isfinite().all()


def test_splines_start_as_the_identity():
    x = torch.linspace(-9, 9, 101, dtype=torch.float64)[:, None]
    z, log_gradient = Spline().forward(x, torch.zeros(101, Spline().size, dtype=torch.float64))
    torch.testing.assert_close(z, x)
    torch.testing.assert_close(log_gradient, torch.zeros_like(x), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spline(bins=1), "bins must be an integer from 2 to 512"),
        (lambda: Spline(bound=0.0), "bound must be above 0"),
    ],
)
def test_choices_that_mean_nothing_are_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
