"""Extra-gradient: the step as written, and its rate on the bilinear game, where plain descent spirals out."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import SGD, Adam, ExtraGradient


def distances(spec, steps):
    """How far (x, y) is from the solution (0, 0) of min_x max_y xy after each step."""
    point = torch.tensor([0.6, -0.8], dtype=torch.float64, requires_grad=True)
    optimizer = spec.build([point])

    def closure():
        x, y = point.detach()
        point.grad = torch.stack([y, -x])
        return x * y

    lengths = [1.0]
    for _ in range(steps):
        if spec.needs_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        lengths.append(point.detach().norm().item())
    return lengths


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.7])
def test_it_converges_at_its_linear_rate_where_descent_spirals_out(rate):
    extra, plain = distances(ExtraGradient(rate), 60), distances(SGD(rate), 60)
    assert extra[-1] == pytest.approx(math.sqrt(1 - rate**2 + rate**4) ** 60, rel=1e-9)
    assert plain[-1] == pytest.approx(math.sqrt(1 + rate**2) ** 60, rel=1e-9)
    assert extra[-1] < 1 < plain[-1]


def test_scaled_as_adam_does_it_converges_too_and_adam_does_not():
    """At a constant rate Adam's scaling keeps steps long near the solution, so the rate falls."""
    extra = distances(ExtraGradient(0.02, betas=(0.0, 0.999)), 1500)
    adam = distances(Adam(0.02, betas=(0.0, 0.999)), 1500)
    assert extra[-1] < 0.1 < adam[-1]


def test_the_step_is_that_of_the_equation():
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    theta = torch.randn(4, generator=generator, dtype=torch.float64)
    half = theta - 0.1 * matrix @ theta
    expected = theta - 0.1 * matrix @ half
    point = theta.clone().requires_grad_()
    optimizer = ExtraGradient(0.1).build([point])
    point.grad = matrix @ theta
    optimizer.look_ahead()
    torch.testing.assert_close(point.detach(), half)
    point.grad = matrix @ point.detach()
    optimizer.step()
    torch.testing.assert_close(point.detach(), expected)


def test_a_schedule_changes_the_rate_of_both_halves():
    point = torch.ones(1, dtype=torch.float64, requires_grad=True)
    optimizer = ExtraGradient(1.0).build([point])
    optimizer.param_groups[0]["lr"] = 0.25

    def closure():
        point.grad = point.detach().clone()
        return point.detach()

    optimizer.step(closure)
    assert point.item() == pytest.approx(1 - 0.25 * (1 - 0.25))


def test_a_step_without_a_look_ahead_is_an_error():
    point = torch.ones(1, requires_grad=True)
    point.grad = torch.ones(1)
    with pytest.raises(SpecError, match=r"ExtraGradient needs step\(closure\), or look_ahead\(\) before step\(\)"):
        ExtraGradient().build([point]).step()
