from __future__ import annotations

import pytest
import torch

from likely.inference.linear.refine import refine

MATRIX = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]], dtype=torch.float64)
CENTRE = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


class Quadratic:
    """½(θ − c)ᵀH(θ − c), which counts its evaluations."""

    calls = 0

    def value(self, point, *, hessian):
        self.calls += 1
        apart = point - CENTRE
        return float(0.5 * apart @ MATRIX @ apart), MATRIX @ apart, MATRIX if hessian else None


def test_with_the_right_hessian_one_step_is_enough():
    energy = Quadratic()
    minimum = refine(energy, torch.zeros(3).double(), MATRIX, tol=1e-20)
    torch.testing.assert_close(minimum.point, CENTRE)
    assert minimum.converged
    assert energy.calls == 2


@pytest.mark.parametrize("factor", [1.0, 1.3])
def test_with_the_hessian_of_a_sample_it_learns_the_rest(factor):
    """On a quadratic of d numbers, steps with a metric that is only roughly right still end at the optimum."""
    rough = factor * (MATRIX + torch.diag(torch.tensor([0.4, 0.8, 0.2], dtype=torch.float64)))
    minimum = refine(Quadratic(), torch.zeros(3).double(), rough, tol=1e-20)
    torch.testing.assert_close(minimum.point, CENTRE, rtol=0, atol=1e-9)


def test_a_hessian_without_an_inverse_is_left_to_newton():
    assert refine(Quadratic(), torch.zeros(3).double(), torch.ones(3, 3).double(), tol=1e-14) is None


def test_steps_that_lead_uphill_are_left_to_newton():
    assert refine(Quadratic(), torch.zeros(3).double(), 0.1 * MATRIX, tol=1e-14) is None


def test_too_few_passes_are_left_to_newton():
    assert refine(Quadratic(), torch.zeros(3).double(), 3 * MATRIX, tol=1e-30, passes=2) is None
