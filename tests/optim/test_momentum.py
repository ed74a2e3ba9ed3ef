"""Momentum keeps the move, so that a rate which falls does not take back speed."""

from __future__ import annotations

import pytest
import torch

from likely.optim.eager import eager
from likely.optim.momentum import Momentum


def steps(optimizer, theta, gradients, rates):
    """The moves under given gradients and rates."""
    moves = []
    for gradient, rate in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        theta.grad = torch.full_like(theta, gradient)
        before = theta.item()
        optimizer.step()
        moves.append(theta.item() - before)
    return moves


@pytest.fixture
def theta():
    return torch.zeros(1, dtype=torch.float64, requires_grad=True)


def test_the_ball_keeps_its_speed_when_the_rate_falls_to_zero(theta):
    """u ← βu − ηg: with η = 0 the move is β times the one before; torch's SGD would stand still."""
    moves = steps(Momentum([theta], lr=0.5, momentum=0.8), theta, [1.0, 1.0, 1.0], [0.5, 0.0, 0.0])
    assert moves == pytest.approx([-0.5, -0.4, -0.32], rel=1e-12)


def test_nesterov_adds_the_gradient_and_the_move_ahead(theta):
    """θ ← θ − ηg + βu with u = −ηg at first: −(1 + β)ηg."""
    moves = steps(Momentum([theta], lr=0.5, momentum=0.8, nesterov=True), theta, [1.0, -2.0], [0.5, 0.1])
    first = -0.5
    second = 0.8 * first + 0.1 * 2.0
    assert moves == pytest.approx([1.8 * first, 0.2 + 0.8 * second], rel=1e-12)


def test_at_a_constant_rate_it_is_torch_sgd(theta):
    peer = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    gradients, rates = [1.0, -0.3, 0.2, 2.0], [0.1] * 4
    for nesterov in (False, True):
        ours = Momentum([theta], lr=0.1, momentum=0.7, nesterov=nesterov)
        theirs = eager(torch.optim.SGD)([peer], lr=0.1, momentum=0.7, nesterov=nesterov)
        assert steps(ours, theta, gradients, rates) == pytest.approx(steps(theirs, peer, gradients, rates), rel=1e-10)


def test_a_closure_is_evaluated_and_parameters_without_gradient_stay(theta):
    still = torch.ones(1, requires_grad=True)
    optimizer = Momentum([theta, still], lr=0.5, momentum=0.0)

    def closure():
        loss = (theta - 3.0).square().sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == pytest.approx(9.0)
    assert theta.item() == pytest.approx(3.0)
    assert still.item() == 1.0
