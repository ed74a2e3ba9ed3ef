"""Adaptive steps against torch's own optimisers, and their behaviour under a lasting gradient in closed form."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.optim import AdaGrad, Adam, AdamW, RMSprop
from likely.optim.eager import eager

PEERS = [
    (AdaGrad(lr=0.1), lambda p: eager(torch.optim.Adagrad)(p, lr=0.1, foreach=False)),
    (RMSprop(lr=0.1, decay=0.9), lambda p: eager(torch.optim.RMSprop)(p, lr=0.1, alpha=0.9)),
    (Adam(lr=0.1, betas=(0.8, 0.95)), lambda p: eager(torch.optim.Adam)(p, lr=0.1, betas=(0.8, 0.95))),
    (AdamW(lr=0.1, weight_decay=0.2), lambda p: eager(torch.optim.AdamW)(p, lr=0.1, weight_decay=0.2)),
]


def path(build, steps=20):
    theta = torch.tensor([1.0, -2.0, 0.3], dtype=torch.float64, requires_grad=True)
    optimizer = build([theta])
    for _ in range(steps):
        optimizer.zero_grad()
        (theta.pow(4).sum() + theta[0] * theta[1]).backward()
        optimizer.step()
    return theta.detach()


@pytest.mark.parametrize(("spec", "peer"), PEERS, ids=lambda value: type(value).__name__)
def test_paths_are_those_of_torch(spec, peer):
    torch.testing.assert_close(path(spec.build), path(peer), rtol=1e-8, atol=1e-10)


def lasting(spec, count, gradient=3.0):
    """The last move after `count` steps under one gradient, and the reach then."""
    theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = spec.build([theta])
    theta.grad = torch.full_like(theta, gradient)
    for _ in range(count):
        before = theta.item()
        optimizer.step()
    return before - theta.item(), spec.reach(optimizer, theta)


def test_the_scale_of_a_lasting_gradient_cancels():
    """AdaGrad's t-th step is η/√t; RMSprop's tends to η; Adam's is η from the first step on, whatever g is."""
    assert lasting(AdaGrad(lr=0.1), 16)[0] == pytest.approx(0.1 / 4, rel=1e-7)
    assert lasting(RMSprop(lr=0.1, decay=0.5), 60)[0] == pytest.approx(0.1, rel=1e-7)
    for count in (1, 7, 40):
        assert lasting(Adam(lr=0.1), count)[0] == pytest.approx(0.1, rel=1e-6)
    assert lasting(RMSprop(lr=0.1, decay=0.75), 1)[0] == pytest.approx(0.1 / math.sqrt(0.25), rel=1e-7)


@pytest.mark.parametrize("spec", [AdaGrad(lr=0.1), RMSprop(lr=0.1), Adam(lr=0.1), AdamW(lr=0.1, weight_decay=0.0)])
def test_reach_is_the_move_per_unit_of_gradient(spec):
    move, reach = lasting(spec, 12)
    assert move == pytest.approx(3.0 * float(reach), rel=1e-6)


def test_decay_acts_on_theta_alone():
    """Without a gradient AdamW is θ ← (1 − ηλ)θ."""
    theta = torch.ones(1, dtype=torch.float64, requires_grad=True)
    optimizer = AdamW(lr=0.1, weight_decay=0.2).build([theta])
    for _ in range(5):
        theta.grad = torch.zeros_like(theta)
        optimizer.step()
    assert theta.item() == pytest.approx(0.98**5, rel=1e-10)


def test_betas_and_eps_are_checked():
    with pytest.raises(SpecError, match="betas must be two numbers, each 0 or more and below 1"):
        Adam(betas=(0.9, 1.0))
    with pytest.raises(SpecError, match="eps must be a positive number"):
        RMSprop(eps=0.0)


def test_weights_alone_decay_if_asked():
    """With gradients of 0, Adam moves nothing, so that only decay does."""
    matrix, vector = torch.ones(2, 2, requires_grad=True), torch.ones(3, requires_grad=True)
    for value in (matrix, vector):
        value.grad = torch.zeros_like(value)
    AdamW(0.5, weight_decay=0.1, only_weights=True).build([matrix, vector]).step()
    assert torch.allclose(matrix, torch.full((2, 2), 0.95))
    assert torch.equal(vector, torch.ones(3))
    with pytest.raises(SpecError, match="only_weights must be True or False"):
        AdamW(only_weights=1)
