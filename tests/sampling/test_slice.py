"""Slice sampling: from a target that is flat each draw is uniform, and any target stays as it is."""

from __future__ import annotations

import math

import torch
from scipy.stats import kstest

from likely.sampling.slice import slice_step


def flat(x):
    """Uniform on (−1, 2)."""
    return torch.where((x > -1) & (x < 2), 0.0, -math.inf).to(x)


def normal(x):
    return -0.5 * x.square()


def test_a_flat_target_is_drawn_anew_in_one_step(seed):
    """Whatever x was, x′ ~ Uniform(−1, 2). Kolmogorov-Smirnov at a false-alarm rate of 1e-4."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.full((4000,), 1.9, dtype=torch.float64)
    new, log_prob = slice_step(flat, x, flat(x), torch.full_like(x, 5.0), generator)
    assert torch.equal(log_prob, flat(new))
    assert kstest(new.numpy(), "uniform", args=(-1, 3)).pvalue > 1e-4


def test_a_normal_target_stays_normal_at_any_width(seed):
    """Draws of the target are draws of it after a step, for widths far too small and far too large; 1e-4 each."""
    generator = torch.Generator().manual_seed(seed)
    for width in (0.1, 1.0, 30.0):
        x = torch.randn(2000, dtype=torch.float64, generator=generator)
        new, log_prob = slice_step(normal, x, normal(x), torch.full_like(x, width), generator)
        torch.testing.assert_close(log_prob, normal(new))
        assert kstest(new.numpy(), "norm").pvalue > 1e-4


def test_a_point_mass_stays_where_it_is():
    """Where nothing but x itself has mass the interval shrinks to x and ends."""
    x = torch.tensor([0.3], dtype=torch.float64)

    def spike(at):
        return torch.where(at == x, 0.0, -math.inf).to(at)

    new, log_prob = slice_step(spike, x, spike(x), torch.ones_like(x), torch.Generator().manual_seed(0))
    assert torch.equal(new, x)
    assert log_prob.item() == 0.0
