from __future__ import annotations

import math

import pytest
import torch

from likely.inference.linear.minimise import _damped, _model_minimum, minimise


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
    minimum = minimise(Bowl(centre), torch.full((3,), start).double(), torch.zeros(3).double(), max_iter=100, tol=1e-16)
    assert minimum.converged
    assert not minimum.unbounded
    torch.testing.assert_close(minimum.point, centre, rtol=0, atol=1e-7)


def test_l1_terms_of_a_smooth_energy_are_met_exactly():
    """tanh(θ − c) = −λ·sign(θ): θ = c − atanh(λ) where that has the sign of c, else 0."""
    centre = torch.tensor([2.0, -1.0, 0.3], dtype=torch.float64)
    minimum = minimise(Bowl(centre), torch.zeros(3).double(), torch.full((3,), 0.5).double(), max_iter=100, tol=1e-16)
    expected = torch.tensor([2 - math.atanh(0.5), -1 + math.atanh(0.5), 0.0], dtype=torch.float64)
    torch.testing.assert_close(minimum.point, expected, rtol=0, atol=1e-8)
    assert minimum.point[2] == 0


class Slope:
    """exp(−θ): its optimum lies at infinity."""

    def value(self, point, *, hessian):
        value = (-point).exp()
        return float(value.sum()), -value, torch.diag(value) if hessian else None


def test_an_optimum_at_infinity_is_said():
    minimum = minimise(Slope(), torch.zeros(1).double(), torch.zeros(1).double(), max_iter=100, tol=1e-14)
    assert minimum.unbounded
    assert torch.isfinite(minimum.point).all()


class Misjudged:
    """θ² with a Hessian that is 5 times too small: every full step overshoots."""

    def value(self, point, *, hessian):
        return float(point @ point), 2 * point, 0.4 * torch.eye(len(point)).double() if hessian else None


def test_a_hessian_that_is_too_small_is_damped_for_good():
    minimum = minimise(Misjudged(), torch.ones(2).double(), torch.zeros(2).double(), max_iter=100, tol=1e-14)
    assert minimum.converged
    assert minimum.point.norm() < 1e-6


class Bent:
    """(y − x²)²/2 + 15x²/2 + y²/200: Gauss-Newton's Hessian has all but −2(y − x²) ∂²x² and 14 of the 15."""

    def __init__(self, *, whole):
        self.whole = whole

    def value(self, point, *, hessian):
        x, y = point.tolist()
        gap = y - x * x
        gradient = torch.tensor([-2 * x * gap + 15 * x, gap + 0.01 * y]).double()
        matrix = torch.tensor([[4 * x * x + 1, -2 * x], [-2 * x, 1.01]]).double()
        return gap * gap / 2 + 7.5 * x * x + y * y / 200, gradient, matrix if hessian else None

    def left_out(self, point):
        x, y = point.tolist()
        return torch.diag(torch.tensor([14 - 2 * (y - x * x), 0.0]).double()) if self.whole else torch.nan


@pytest.mark.parametrize("whole", [True, False])
def test_late_steps_take_what_gauss_newton_leaves_out(whole):
    """Its own steps are damped so that 91 are needed."""
    start, l1 = torch.tensor([2.0, 5.0]).double(), torch.zeros(2).double()
    minimum = minimise(Bent(whole=whole), start, l1, max_iter=30 if whole else 200, tol=1e-14, convex=False)
    assert minimum.converged
    torch.testing.assert_close(minimum.point, torch.zeros(2).double(), rtol=0, atol=1e-6)


class Plateau:
    """1 − exp(−θ²/2) of each number, with Gauss-Newton's curvature: flat far from 0."""

    def value(self, point, *, hessian):
        near = (-point.square() / 2).exp()
        return float((1 - near).sum()), point * near, torch.diag(near) if hessian else None


@pytest.mark.parametrize(("convex", "held"), [(True, False), (False, True)])
def test_only_a_damping_common_to_all_parameters_holds_a_flat_one(convex, held):
    """One parameter is near its optimum; the other has next to no curvature, and would be thrown to −10³."""
    start = torch.tensor([0.1, 4.0], dtype=torch.float64)
    energy = Tilted(Plateau())
    _, gradient, hessian = energy.value(start, hessian=True)
    step = _model_minimum(_damped(hessian, 1e-2, convex), gradient, start, torch.zeros(2).double()) - start
    assert (float(step.abs().max()) < 20) == held


class Tilted:
    """Another energy, falling by 1/10 to the left in each number."""

    def __init__(self, energy):
        self.energy = energy

    def value(self, point, *, hessian):
        value, gradient, curvature = self.energy.value(point, hessian=hessian)
        return value + 0.1 * float(point.sum()), gradient + 0.1, curvature
