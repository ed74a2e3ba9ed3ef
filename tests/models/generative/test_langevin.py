"""Adjusted Langevin steps: the density they leave as it is, at any step size, and what stays held."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.random import drawing
from likely.models.generative.langevin import Tilted, adjusted_step


def tilt(z):
    """f = 1½ z₀² − z₁: z₀ ~ N(0, ¼), z₁ ~ N(1, 1)."""
    return 1.5 * z[:, 0].square() - z[:, 1]


@pytest.mark.parametrize("size", [0.1, 0.8])
def test_a_step_leaves_the_density_as_it_is(size, seed):
    """Moments of 20,000 rows of p after 5 steps, within 5 standard errors: a false alarm in 10⁵ runs or so."""
    count = 20_000
    with drawing(seed) as generator, torch.no_grad():
        rows = torch.randn(count, 2, generator=generator, dtype=torch.float64) * torch.tensor([0.5, 1.0])
        at = Tilted.at(tilt, rows + torch.tensor([0.0, 1.0]))
        for _ in range(5):
            at, accepted = adjusted_step(tilt, at, size)
    assert 0 < accepted < 1
    mean, variance = at.z.mean(0), at.z.var(0)
    exact, wide = torch.tensor([0.0, 1.0]), torch.tensor([0.25, 1.0])
    assert bool(((mean - exact).abs() < 5 * (wide / count).sqrt()).all())
    assert bool(((variance / wide - 1).abs() < 5 * math.sqrt(2 / count)).all())


def test_at_no_tilt_rows_are_standard_normal(seed):
    with drawing(seed), torch.no_grad():
        at = Tilted.at(tilt, torch.zeros(20_000, 2))
        for _ in range(60):
            at, _ = adjusted_step(tilt, at, 0.5, beta=0.0)
    assert bool(((at.z.var(0) - 1).abs() < 5 * math.sqrt(2 / 20_000)).all())


def test_what_is_held_stays_and_the_rest_follows_it(seed):
    """f = −ρz₀z₁ + ½ρ²z₀² … with z₀ held, z₁ ~ N(ρz₀, 1)."""

    def joined(z):
        return -2.0 * z[:, 0] * z[:, 1]

    gaps = torch.tensor([[False, True]]).expand(20_000, 2)
    with drawing(seed), torch.no_grad():
        at = Tilted.at(joined, torch.tensor([[1.5, 0.0]]).repeat(20_000, 1))
        for _ in range(60):
            at, _ = adjusted_step(joined, at, 0.5, 1.0, gaps)
    assert bool((at.z[:, 0] == 1.5).all())
    assert abs(float(at.z[:, 1].mean()) - 3.0) < 5 / math.sqrt(20_000)
