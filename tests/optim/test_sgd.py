"""The update equations of gradient steps with and without momentum, on f(θ) = aθ²/2 where they can be solved."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import SGD, HeavyBall, Nesterov

CURVATURE, RATE, BETA, STEPS = 2.0, 0.1, 0.6, 15


def path(spec, steps=STEPS):
    """θ₁, …, θₙ from θ₀ = 1."""
    theta = torch.ones(1, dtype=torch.float64, requires_grad=True)
    optimizer = spec.build([theta])
    visited = []
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * CURVATURE * theta.square()).sum().backward()
        optimizer.step()
        visited.append(theta.item())
    return np.array(visited)


def test_plain_steps_shrink_by_the_same_factor():
    """θₜ = (1 − ηa)ᵗ, and with decay μ it is (1 − η(a + μ))ᵗ."""
    time = np.arange(1, STEPS + 1)
    np.testing.assert_allclose(path(SGD(lr=RATE)), (1 - RATE * CURVATURE) ** time, rtol=1e-10)
    decayed = (1 - RATE * (CURVATURE + 0.5)) ** time
    np.testing.assert_allclose(path(SGD(lr=RATE, weight_decay=0.5)), decayed, rtol=1e-10)


@pytest.mark.parametrize("spec", [SGD(lr=RATE, momentum=BETA), HeavyBall(lr=RATE, momentum=BETA)], ids=repr)
def test_momentum_solves_its_difference_equation(spec):
    """θₜ₊₁ = (1 + β − ηa)θₜ − βθₜ₋₁."""
    before, theta, expected = 1.0, 1.0, []
    for _ in range(STEPS):
        before, theta = theta, (1 + BETA - RATE * CURVATURE) * theta - BETA * before
        expected.append(theta)
    np.testing.assert_allclose(path(spec), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "spec", [SGD(lr=RATE, momentum=BETA, nesterov=True), Nesterov(lr=RATE, momentum=BETA)], ids=repr
)
def test_nesterov_takes_the_gradient_where_the_ball_will_be(spec):
    """θₜ₊₁ = (1 − ηa)θ̃ₜ and the parameters hold θ̃ₜ₊₁ = θₜ₊₁ + β(θₜ₊₁ − θₜ)."""
    theta, ahead, expected = 1.0, 1.0, []
    for _ in range(STEPS):
        following = (1 - RATE * CURVATURE) * ahead
        ahead, theta = following + BETA * (following - theta), following
        expected.append(ahead)
    np.testing.assert_allclose(path(spec), expected, rtol=1e-9, atol=1e-12)


def test_reach_is_the_step_under_a_lasting_unit_gradient():
    """With momentum gradients add up to g / (1 − β), so the 200th step is that long."""
    for spec in (SGD(lr=RATE), SGD(lr=RATE, momentum=BETA), HeavyBall(lr=RATE, momentum=BETA)):
        theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = spec.build([theta])
        theta.grad = torch.ones_like(theta)
        for _ in range(200):
            before = theta.item()
            optimizer.step()
        assert before - theta.item() == pytest.approx(spec.reach(optimizer, theta), rel=1e-9)


def test_values_that_cannot_be_are_refused():
    with pytest.raises(SpecError, match="momentum must be 0 or more and below 1"):
        SGD(momentum=1.0)
    with pytest.raises(SpecError, match="nesterov must be False when momentum is 0"):
        SGD(nesterov=True)
    with pytest.raises(SpecError, match="momentum must be above 0 and below 1"):
        Nesterov(momentum=0.0)
