"""L-BFGS ends on a quadratic within about as many steps as there are curvatures, and stops where the gradient is 0."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import LBFGS

CURVATURE = torch.diag(torch.tensor([100.0, 10.0, 1.0, 0.1], dtype=torch.float64))
CENTRE = torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64)


def run(spec, function, start):
    theta = start.clone().requires_grad_()
    optimizer = spec.build([theta])
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = function(theta)
        loss.backward()
        return loss

    optimizer.step(closure)
    return theta.detach(), evaluations


def quadratic(theta):
    apart = theta - CENTRE
    return 0.5 * apart @ CURVATURE @ apart


def rosenbrock(theta):
    return (1 - theta[0]) ** 2 + 100 * (theta[1] - theta[0] ** 2) ** 2


def test_a_quadratic_of_condition_1000_is_solved_in_one_call():
    theta, _ = run(LBFGS(iterations=50), quadratic, torch.zeros(4, dtype=torch.float64))
    torch.testing.assert_close(theta, CENTRE, rtol=1e-5, atol=1e-5)


def test_the_valley_of_rosenbrock_is_followed_to_its_end():
    theta, _ = run(LBFGS(iterations=200), rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64))
    torch.testing.assert_close(theta, torch.ones(2, dtype=torch.float64), rtol=1e-5, atol=1e-5)


def test_the_tolerance_is_on_the_gradient():
    theta, evaluations = run(LBFGS(tol=1e-3, iterations=100), quadratic, CENTRE.clone())
    assert evaluations == 1
    assert torch.equal(theta, CENTRE)


def test_it_needs_a_closure_and_joins_all_numbers():
    assert LBFGS.needs_closure
    assert not LBFGS.elementwise
    for name, value in (("history", 0), ("iterations", 2.5), ("tol", -1.0)):
        with pytest.raises(SpecError, match=f"{name} must be"):
            LBFGS(**{name: value})
