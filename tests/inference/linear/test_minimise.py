from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.inference.linear.minimise import minimise, quadratic_l1


def quadratic(seed, size, rank, strength):
    """A random convex quadratic ½θᵀHθ − bᵀθ with b in the range of H, and L1 rates of which some are 0."""
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(rank, size)) * np.exp(rng.normal(size=size))
    matrix = torch.from_numpy(design.T @ design)
    linear = torch.from_numpy(design.T @ rng.normal(size=rank))
    rates = strength * linear.abs().max() * torch.from_numpy(rng.uniform(0.1, 1, size=size) * (rng.random(size) < 0.8))
    return matrix, linear, rates


def distance_from_rest(matrix, linear, rates, theta):
    """How far the subgradient of the whole is from holding 0."""
    slope = matrix @ theta - linear
    moving = (slope + rates * theta.sign()).abs()
    resting = (slope.abs() - rates).clamp_min(0)
    return torch.where(theta != 0, moving, resting).max().item()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), size=st.integers(1, 12), strength=st.floats(0.001, 1.5))
def test_the_quadratic_with_l1_meets_its_optimality_conditions(seed, size, strength):
    matrix, linear, rates = quadratic(seed, size, 2 * size + 1, strength)
    found = quadratic_l1(matrix, linear, rates, torch.zeros(size, dtype=torch.float64))
    assert distance_from_rest(matrix, linear, rates, found) <= 1e-10 * (1 + float(linear.abs().max()))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), size=st.integers(2, 8), strength=st.floats(0.01, 0.9))
def test_the_start_does_not_matter(seed, size, strength):
    matrix, linear, rates = quadratic(seed, size, 2 * size + 1, strength)
    starts = torch.zeros(size, dtype=torch.float64), torch.full((size,), 5.0, dtype=torch.float64)
    near, far = (quadratic_l1(matrix, linear, rates, start) for start in starts)
    torch.testing.assert_close(near, far, rtol=1e-8, atol=1e-10)


def test_a_singular_quadratic_is_solved_too():
    matrix, linear, rates = quadratic(0, 10, 4, 0.1)
    found = quadratic_l1(matrix, linear, rates, torch.zeros(10, dtype=torch.float64))
    assert distance_from_rest(matrix, linear, rates, found) <= 1e-7 * float(linear.abs().max())


def test_soft_thresholding_is_the_diagonal_case():
    linear = torch.tensor([3.0, -2.0, 0.5, -0.1], dtype=torch.float64)
    found = quadratic_l1(torch.eye(4, dtype=torch.float64) * 2, linear, torch.ones(4, dtype=torch.float64), linear)
    torch.testing.assert_close(found, torch.tensor([1.0, -0.5, 0.0, 0.0], dtype=torch.float64))


class Bowl:
    """log cosh of each number about a centre: convex, with Newton steps that overshoot from afar."""

    def __init__(self, centre):
        self.centre = centre

    def value(self, point, *, hessian):
        apart = point - self.centre
        value = float((apart.abs() + torch.nn.functional.softplus(-2 * apart.abs()) - math.log(2)).sum())
        return value, apart.tanh(), torch.diag(1 - apart.tanh() ** 2) if hessian else None


@pytest.mark.parametrize("start", [0.0, 1.5, 8.0])
def test_steps_are_damped_until_the_energy_falls(start):
    centre = torch.tensor([0.3, -2.0, 1.0], dtype=torch.float64)
    found = minimise(Bowl(centre), torch.full((3,), start).double(), torch.zeros(3).double(), max_iter=100, tol=1e-16)
    assert found.converged
    assert not found.unbounded
    torch.testing.assert_close(found.point, centre, rtol=0, atol=1e-7)


def test_l1_terms_of_a_smooth_energy_are_met_exactly():
    """tanh(θ − c) = −λ·sign(θ): θ = c − atanh(λ) where that has the sign of c, else 0."""
    centre = torch.tensor([2.0, -1.0, 0.3], dtype=torch.float64)
    found = minimise(Bowl(centre), torch.zeros(3).double(), torch.full((3,), 0.5).double(), max_iter=100, tol=1e-16)
    expected = torch.tensor([2 - math.atanh(0.5), -1 + math.atanh(0.5), 0.0], dtype=torch.float64)
    torch.testing.assert_close(found.point, expected, rtol=0, atol=1e-8)
    assert found.point[2] == 0


class Slope:
    """exp(−θ): its optimum lies at infinity."""

    def value(self, point, *, hessian):
        value = (-point).exp()
        return float(value.sum()), -value, torch.diag(value) if hessian else None


def test_an_optimum_at_infinity_is_said():
    found = minimise(Slope(), torch.zeros(1).double(), torch.zeros(1).double(), max_iter=100, tol=1e-14)
    assert found.unbounded
    assert torch.isfinite(found.point).all()


class Misjudged:
    """θ² with a Hessian that is 5 times too small: every full step overshoots."""

    def value(self, point, *, hessian):
        return float(point @ point), 2 * point, 0.4 * torch.eye(len(point)).double() if hessian else None


def test_a_hessian_that_is_too_small_is_damped_for_good():
    found = minimise(Misjudged(), torch.ones(2).double(), torch.zeros(2).double(), max_iter=100, tol=1e-14)
    assert found.converged
    assert found.point.norm() < 1e-6
