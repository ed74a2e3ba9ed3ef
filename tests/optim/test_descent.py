"""Gradient descent with a line search: sufficient decrease at every step, down to the minimum."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import Armijo, GradientDescent


def rosenbrock(p: torch.Tensor) -> torch.Tensor:
    return 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2


def closure_of(optimizer, function, point):
    def closure():
        optimizer.zero_grad()
        loss = function(point)
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("search", [Armijo(), Armijo(shrink=0.8, decrease=0.3), Armijo(initial=10.0, decrease=0.9)])
@pytest.mark.parametrize("lr", [1.0, 0.1])
def test_sufficient_decrease_holds_at_every_step(search, lr):
    """f(θ − tη∇f) ≤ f(θ) − c·t·η‖∇f‖² on a function with a curved valley."""
    point = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = GradientDescent(lr, search).build([point])
    closure = closure_of(optimizer, rosenbrock, point)
    for _ in range(200):
        start = point.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(rosenbrock(start), start)
        before = optimizer.step(closure).item()
        t = optimizer.step_size
        assert t > 0
        torch.testing.assert_close(point.detach(), start.detach() - t * lr * gradient)
        assert before == rosenbrock(start).item()
        assert rosenbrock(point).item() <= before - search.decrease * t * lr * gradient.square().sum().item()


def test_the_gradient_left_behind_is_that_of_the_new_point():
    """So that ‖∇‖ ≤ ε can be checked without another evaluation; it falls below any ε on a quadratic."""
    curvature = torch.tensor([1.0, 30.0], dtype=torch.float64)
    point = torch.ones(2, dtype=torch.float64, requires_grad=True)
    optimizer = GradientDescent().build([point])
    closure = closure_of(optimizer, lambda p: 0.5 * (curvature * p**2).sum(), point)
    for _ in range(1_000):
        optimizer.step(closure)
        torch.testing.assert_close(point.grad, curvature * point.detach())
        if point.grad.norm() <= 1e-6:
            break
    assert point.grad.norm() <= 1e-6


def test_where_no_step_descends_nothing_changes():
    """|p| at its kink from a made-up gradient: every trial raises the loss."""
    point = torch.zeros(1, requires_grad=True)
    optimizer = GradientDescent().build([point])

    def closure():
        point.grad = torch.ones(1)
        return point.abs().sum()

    optimizer.step(closure)
    assert optimizer.step_size == 0
    assert point.item() == 0
    assert point.grad.item() == 1


def test_a_trial_that_is_not_finite_is_too_far():
    point = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer = GradientDescent(lr=8.0).build([point])
    closure = closure_of(optimizer, lambda p: (p - p.log()).sum() + 0.25 * p.sum(), point)
    for _ in range(60):
        optimizer.step(closure)
    assert point.item() == pytest.approx(0.8, abs=1e-4)


def test_parameters_without_gradient_stay():
    used, unused = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    optimizer = GradientDescent().build([used, unused])
    optimizer.step(closure_of(optimizer, lambda p: p.square().sum(), used))
    assert used.item() == 0
    assert unused.item() == 1


def test_it_asks_for_a_closure():
    with pytest.raises(SpecError, match=r"GradientDescent needs step\(closure\)"):
        GradientDescent().build([torch.ones(1, requires_grad=True)]).step()
