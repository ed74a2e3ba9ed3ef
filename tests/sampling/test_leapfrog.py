"""The leapfrog goes back the way it came, keeps volume, and keeps the energy to the second order of ε."""

from __future__ import annotations

import math

import pytest
import torch

from likely.sampling.leapfrog import DIVERGED, Point, along, back, first_step, gained, leapfrog

FACTOR = torch.tensor([[1.3, 0.0], [0.4, 0.6]], dtype=torch.float64)


class Bowl:
    """log p(x) = −Σ cosh x, with a gradient that can itself be differentiated."""

    def __call__(self, x):
        return -x.cosh().sum(1)

    def value_and_grad(self, x):
        return self(x), -x.sinh()


def walked(x, v, epsilon, steps):
    value, gradient = Bowl().value_and_grad(x)
    point = Point(x, v, value, gradient, back(gradient, FACTOR))
    for _ in range(steps):
        point = leapfrog(Bowl(), point, epsilon, FACTOR)
    return point


@pytest.fixture
def start():
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(4, 2, dtype=torch.float64, generator=generator) for _ in range(2))


def test_it_goes_back_by_the_opposite_step_and_by_the_opposite_speed(start):
    there = walked(*start, 0.1, 20)
    for x, v in (walked(there.x, there.v, -0.1, 20)[:2], walked(there.x, -there.v, 0.1, 20)[:2]):
        torch.testing.assert_close(x, start[0], rtol=0, atol=1e-10)
        torch.testing.assert_close(v.abs(), start[1].abs(), rtol=0, atol=1e-10)


def test_it_keeps_volume(start):
    """|∂(x′, v′)/∂(x, v)| = 1 at any ε, also where the energy is far off."""

    def joint(phase):
        point = walked(phase[None, :2], phase[None, 2:], 0.4, 5)
        return torch.cat([point.x[0], point.v[0]])

    jacobian = torch.autograd.functional.jacobian(joint, torch.cat([start[0][0], start[1][0]]))
    assert torch.linalg.det(jacobian).item() == pytest.approx(1.0, rel=1e-9)


def test_half_the_step_makes_a_quarter_of_the_error(start):
    """Over the same time, the energy error is O(ε²)."""
    errors = []
    for epsilon, steps in ((0.02, 50), (0.01, 100)):
        begin = walked(*start, 0.0, 1)
        errors.append((walked(*start, epsilon, steps).log_joint - begin.log_joint).abs())
    torch.testing.assert_close(errors[0] / errors[1], torch.full((4,), 4.0, dtype=torch.float64), rtol=0.01, atol=0)


def test_factors_are_products_with_the_root_and_its_transpose(start):
    x, v = start
    torch.testing.assert_close(along(v, FACTOR), torch.einsum("ij,cj->ci", FACTOR, v))
    torch.testing.assert_close(back(x, FACTOR), torch.einsum("ji,cj->ci", FACTOR, x))
    torch.testing.assert_close(along(v, FACTOR.diagonal()), along(v, torch.diag(FACTOR.diagonal())))


def test_lost_energy_is_a_divergence_and_so_is_nan(start):
    point = walked(*start, 0.0, 1)
    values = torch.tensor([0.0, -DIVERGED - 1, math.nan, 1.0], dtype=torch.float64) + 0.5 * point.v.square().sum(1)
    gain, diverged = gained(torch.zeros(4, dtype=torch.float64), point._replace(value=values))
    assert diverged.tolist() == [False, True, True, False]
    torch.testing.assert_close(gain, torch.tensor([0.0, -math.inf, -math.inf, 1.0], dtype=torch.float64))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_first_step_is_in_the_units_of_the_target(scale):
    """Doubling and halving land within a factor of 2 of one ε for all scales, relative to the scale."""
    x = torch.ones(1, 1, dtype=torch.float64) * scale

    def normal(rows):
        return -0.5 * (rows / scale).square().sum(1)

    epsilon = first_step(normal, x, normal(x), -x / scale**2)
    assert 0.5 < epsilon / scale < 4.0
