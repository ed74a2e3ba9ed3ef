"""Langevin dynamics by exact scores; adjusted steps leave their density as it is, at any step size."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.random import drawing, normal_like
from likely.models.generative.langevin import Tilted, adjusted_step, annealed_langevin, langevin_step

ROWS = 20_000


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


@pytest.mark.parametrize("size", [0.1, 0.8])
def test_steps_on_a_gaussian_settle_at_the_variance_of_their_recursion(size, seed):
    """x ← (1 − α/2v) x + √α ε has the stationary variance v / (1 − α/4v): a little more than v, by the step's size."""
    variance = 0.5
    with drawing(seed):
        x = normal_like(torch.zeros(ROWS, 1, dtype=torch.float64))
        for _ in range(150):
            x = langevin_step(x, -x / variance, size)
    expected = variance / (1 - size / (4 * variance))
    # six standard errors of a variance, and of a mean: false alarms below 1e-8
    assert abs(float(x.var()) / expected - 1) < 6 * math.sqrt(2 / ROWS)
    assert abs(float(x.mean())) < 6 * math.sqrt(expected / ROWS)


def test_noise_that_falls_finds_far_modes_in_their_proportions(seed):
    """p = 0.3 N(−6, 0.3²) + 0.7 N(6, 0.3²), from the exact scores of p with noise."""
    means, weights = torch.tensor([-6.0, 6.0]), torch.tensor([0.3, 0.7])
    widths = [10.0, 6.0, 3.5, 2.0, 1.2, 0.7, 0.4]

    def score(x, level):
        variance = 0.3**2 + widths[level] ** 2
        logits = weights.log() - 0.5 * (x - means) ** 2 / variance
        return (torch.softmax(logits, -1) * (means - x)).sum(-1, keepdim=True) / variance

    with drawing(seed):
        start = normal_like(torch.zeros(4000, 1)) * 10.0
        rows = annealed_langevin(score, widths, start, steps=30, step=0.2)
    # five standard errors of the fraction, and 3 % for the modes that part before the walk has settled
    assert abs(float((rows > 0).float().mean()) - 0.7) < 5 * math.sqrt(0.21 / 4000) + 0.03
    assert float((rows.abs() - 6).abs().mean()) < 1.0


def test_what_is_held_stays_while_noise_falls():
    held = torch.tensor([[1.0, 0.0]])
    rows = annealed_langevin(
        lambda x, level: -x, [1.0], torch.zeros(5, 2), 3, 0.1, lambda x, level: torch.where(held > 0, 7.0, x)
    )
    assert bool((rows[:, 0] == 7.0).all())
    assert float(rows[:, 1].abs().min()) > 0
