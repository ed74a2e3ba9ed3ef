"""The leapfrog: a step along the trajectory of a particle on the landscape −log p, reversible and volume preserving.

    v ← v + (ε/2)Lᵀ∇log p(x),   x ← x + εLv,   v ← v + (ε/2)Lᵀ∇log p(x)

The energy −log p(x) + ½‖v‖² is kept up to O(ε²) along a trajectory of fixed length, so a move to its end is accepted
often. L, a root of the covariance, makes all directions alike.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .density import LogDensity
from .gradient import value_and_gradient

__all__ = ["DIVERGED", "Point", "along", "back", "first_step", "gained", "leapfrog"]

DIVERGED = 1000.0
"""A loss of log-density beyond which the leapfrog has left the trajectory."""


class Point(NamedTuple):
    """Where each chain's particle is, how it moves, and log p, ∇log p and Lᵀ∇log p there."""

    x: Tensor  # (chains, *event)
    v: Tensor  # (chains, d)
    value: Tensor  # (chains,)
    gradient: Tensor  # (chains, *event)
    force: Tensor  # (chains, d)

    @property
    def log_joint(self) -> Tensor:
        """log p(x) − ½‖v‖²: minus the energy."""
        return self.value - 0.5 * self.v.square().sum(1)


def leapfrog(log_prob: LogDensity, point: Point, epsilon: float, factor: Tensor) -> Point:
    """One step of length ε; a negative ε goes back.

    >>> def normal(x):
    ...     return -0.5 * x.square().sum(1)
    >>> x, v = torch.tensor([[1.0]]), torch.tensor([[0.0]])
    >>> start = Point(x, v, normal(x), -x, -x)
    >>> there = leapfrog(normal, start, 0.1, torch.ones(1))
    >>> there.x, leapfrog(normal, there, -0.1, torch.ones(1)).x
    (tensor([[0.9950]]), tensor([[1.]]))
    """
    v = torch.add(point.v, point.force, alpha=0.5 * epsilon)
    x = torch.add(point.x, along(v, factor).reshape(point.x.shape), alpha=epsilon)
    value, gradient = value_and_gradient(log_prob, x)
    force = back(gradient, factor)
    return Point(x, torch.add(v, force, alpha=0.5 * epsilon), value, gradient, force)


def gained(start: Tensor, point: Point) -> tuple[Tensor, Tensor]:
    """How much of the log joint density was gained since `start` (−∞ if it is lost), and which chains diverged."""
    gain = point.log_joint - start
    diverged = ~(gain > -DIVERGED)  # NaN has diverged too
    return gain.masked_fill(diverged, -torch.inf), diverged


def along(v: Tensor, factor: Tensor) -> Tensor:
    """L v of each chain; a factor (d,) is a diagonal."""
    return v @ factor.T if factor.ndim == 2 else v * factor


def back(gradient: Tensor, factor: Tensor) -> Tensor:
    """Lᵀ g of each chain, (chains, *event) → (chains, d)."""
    rows = gradient.reshape(len(gradient), -1)
    return rows @ factor if factor.ndim == 2 else rows * factor


def first_step(log_prob: LogDensity, position: Tensor, value: Tensor, gradient: Tensor) -> float:
    """An ε at which one step neither keeps the energy exactly nor loses it: doubled or halved from 0.1.

    The particle starts with speed ±1 along each axis by turns, so that no randomness is spent.
    """
    rows = position.reshape(len(position), -1)
    sign = torch.where(torch.arange(rows.shape[1], device=rows.device) % 2 == 0, 1.0, -1.0).to(rows)
    factor = torch.ones_like(sign)
    start = Point(position, sign.expand_as(rows), value, gradient, gradient.reshape(rows.shape))

    def acceptance(epsilon: float) -> float:
        gain, _ = gained(start.log_joint, leapfrog(log_prob, start, epsilon, factor))
        return float(gain.clamp_max(0.0).exp().mean())

    epsilon = 0.1
    larger = acceptance(epsilon) > 0.8
    for _ in range(60):
        other = epsilon * 2 if larger else epsilon / 2
        if (acceptance(other) > 0.8) != larger:
            return epsilon if larger else other
        epsilon = other
    return epsilon
