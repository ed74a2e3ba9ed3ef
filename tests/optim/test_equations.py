"""The update equations, written out step by step, against what the optimisers do on a quadratic."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.optim import SGD, AdaGrad, Adam, AdamW, GradientDescent, HeavyBall, Nesterov, Optimizer, RMSprop

STEPS = 12
CURVATURE = np.array([[3.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.3]])
CENTRE = np.array([1.0, -2.0, 0.5])
START = np.array([0.3, 0.7, -1.1])


def gradient(theta: np.ndarray) -> np.ndarray:
    return CURVATURE @ (theta - CENTRE)


def torch_path(spec: Optimizer, rates: np.ndarray | None = None) -> np.ndarray:
    """The parameters after each step, held in two tensors as layers would; under `rates` that change, if given."""
    parts = [torch.tensor(START[:2], requires_grad=True), torch.tensor(START[2:], requires_grad=True)]
    optimizer = spec.build(parts)
    curvature, centre = torch.tensor(CURVATURE), torch.tensor(CENTRE)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        apart = torch.cat(parts) - centre
        loss = 0.5 * apart @ curvature @ apart
        loss.backward()
        return loss

    path = []
    for step in range(STEPS):
        closure()
        if rates is not None:
            for group in optimizer.param_groups:
                group["lr"] = float(rates[step])
        optimizer.step(closure if spec.needs_closure else None)
        path.append(torch.cat(parts).detach().numpy().copy())
    return np.array(path)


def every_step(lr):
    """One rate a step, of a constant or of as many as there are steps."""
    return np.broadcast_to(lr, STEPS)


def sgd(lr, momentum=0.0, weight_decay=0.0, nesterov=False):
    theta, velocity = START.copy(), np.zeros(3)
    for rate in every_step(lr):
        g = gradient(theta) + weight_decay * theta
        velocity = momentum * velocity + g
        theta = theta - rate * (g + momentum * velocity if nesterov else velocity)
        yield theta


def heavy_ball(lr, momentum):
    before, theta = START.copy(), START.copy()
    for rate in every_step(lr):
        before, theta = theta, theta - rate * gradient(theta) + momentum * (theta - before)
        yield theta


def nesterov(lr, momentum):
    """θ̃ = θ + β(θ − θ before), θ ← θ̃ − η∇(θ̃); yields the next θ̃, which is where parameters stand."""
    theta, ahead = START.copy(), START.copy()
    for rate in every_step(lr):
        before, theta = theta, ahead - rate * gradient(ahead)
        ahead = theta + momentum * (theta - before)
        yield ahead


def adagrad(lr, eps):
    theta, total = START.copy(), np.zeros(3)
    for _ in range(STEPS):
        g = gradient(theta)
        total = total + g**2
        theta = theta - lr * g / (np.sqrt(total) + eps)
        yield theta


def rmsprop(lr, decay, eps):
    theta, average = START.copy(), np.zeros(3)
    for _ in range(STEPS):
        g = gradient(theta)
        average = decay * average + (1 - decay) * g**2
        theta = theta - lr * g / (np.sqrt(average) + eps)
        yield theta


def adam(lr, betas, eps, weight_decay=0.0):
    theta, first, second = START.copy(), np.zeros(3), np.zeros(3)
    for t in range(1, STEPS + 1):
        g = gradient(theta)
        theta = theta - lr * weight_decay * theta
        first = betas[0] * first + (1 - betas[0]) * g
        second = betas[1] * second + (1 - betas[1]) * g**2
        theta = theta - lr * (first / (1 - betas[0] ** t)) / (np.sqrt(second / (1 - betas[1] ** t)) + eps)
        yield theta


PATHS = {
    SGD(0.1): lambda: sgd(0.1),
    SGD(0.1, momentum=0.8): lambda: sgd(0.1, 0.8),
    SGD(0.1, momentum=0.8, weight_decay=0.3): lambda: sgd(0.1, 0.8, 0.3),
    SGD(0.1, momentum=0.8, nesterov=True): lambda: sgd(0.1, 0.8, nesterov=True),
    HeavyBall(0.1, 0.7): lambda: heavy_ball(0.1, 0.7),
    Nesterov(0.1, 0.7): lambda: nesterov(0.1, 0.7),
    AdaGrad(0.3, eps=1e-3): lambda: adagrad(0.3, 1e-3),
    RMSprop(0.05, decay=0.9, eps=1e-3): lambda: rmsprop(0.05, 0.9, 1e-3),
    Adam(0.1, betas=(0.8, 0.95), eps=1e-3): lambda: adam(0.1, (0.8, 0.95), 1e-3),
    AdamW(0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2): lambda: adam(0.1, (0.8, 0.95), 1e-3, 0.2),
    GradientDescent(0.1, line_search=None): lambda: sgd(0.1),
}


@pytest.mark.parametrize("spec", PATHS, ids=str)
def test_steps_are_those_of_the_equations(spec):
    np.testing.assert_allclose(torch_path(spec), list(PATHS[spec]()), rtol=0, atol=1e-6)


RATES = 0.1 * np.array([0.1, 0.5, 1.0, 1.0, 0.7, 0.3, 0.0, 0.2, 2.0, 0.5, 0.1, 0.01])
"""Warmed up, decayed, at rest and started anew."""


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (SGD(0.1, momentum=0.8), sgd(RATES, 0.8)),
        (HeavyBall(0.1, 0.7), heavy_ball(RATES, 0.7)),
        (Nesterov(0.1, 0.7), nesterov(RATES, 0.7)),
    ],
    ids=["sgd", "heavy ball", "nesterov"],
)
def test_steps_are_those_of_the_equations_while_the_rate_changes(spec, path):
    np.testing.assert_allclose(torch_path(spec, RATES), list(path), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", [HeavyBall(0.1, 0.7), Nesterov(0.1, 0.7)], ids=str)
def test_a_ball_is_taken_up_where_it_was_left(spec):
    whole = torch.tensor(START, requires_grad=True)
    halves = torch.tensor(START, requires_grad=True)
    single, first = spec.build([whole]), spec.build([halves])
    second = spec.build([halves])
    for step in range(STEPS):
        if step == STEPS // 2:
            second.load_state_dict(first.state_dict())
        for theta, optimizer in ((whole, single), (halves, first if step < STEPS // 2 else second)):
            theta.grad = torch.tensor(gradient(theta.detach().numpy()))
            optimizer.step()
    assert torch.equal(whole, halves)


@pytest.mark.parametrize("decay", [0.01, 0.5, 3.0])
def test_weight_decay_shrinks_the_minimum_most_where_the_loss_is_flat(decay):
    """The minimum moves to (H + μI)⁻¹Hθ*: by the factor λ/(λ + μ) along each eigenvector of H."""
    theta = torch.tensor(START, requires_grad=True)
    optimizer = SGD(lr=0.25, weight_decay=decay).build([theta])
    for _ in range(2_000):
        theta.grad = torch.tensor(gradient(theta.detach().numpy()))
        optimizer.step()
    reached = theta.detach().numpy()
    np.testing.assert_allclose(reached, np.linalg.solve(CURVATURE + decay * np.eye(3), CURVATURE @ CENTRE), atol=1e-8)
    values, vectors = np.linalg.eigh(CURVATURE)
    np.testing.assert_allclose(vectors.T @ reached, values / (values + decay) * (vectors.T @ CENTRE), atol=1e-8)
