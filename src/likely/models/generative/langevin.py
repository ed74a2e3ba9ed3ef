"""Langevin dynamics: draws from p by its score alone, all rows at once.

    x ← x + ½α s(x) + √α ε                       at small α and in the long run, x ~ p
    annealed: with the scores of p at falling noise σ₁ > … > σ_L and α = step · σᵢ²

Noise joins what p keeps apart, so rows reach every mode at the first levels, in the right proportions.

    adjusted: of p(z) ∝ exp(−½‖z‖² − βf(z)), a step is accepted as Metropolis and Hastings ask: z ~ p at any α
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...core.random import current_generator, normal_like

__all__ = ["BEST", "Tilted", "adjusted_step", "annealed_langevin", "langevin_step"]

BEST = 0.574
"""The rate of acceptance at which an adjusted chain moves furthest, where there are many coordinates."""


def langevin_step(x: Tensor, score: Tensor, size: float) -> Tensor:
    """x + ½α s + √α ε with α = size."""
    return (x + 0.5 * size * score).add_(normal_like(x), alpha=math.sqrt(size))


def annealed_langevin(
    score: Callable[[Tensor, int], Tensor],
    widths: Sequence[float],
    x: Tensor,
    steps: int,
    step: float,
    held: Callable[[Tensor, int], Tensor] | None = None,
) -> Tensor:
    """Rows after so many steps at each level: `score(x, level)`, step sizes `step · widths[level]²`.

    `held` puts back what is known of a row after every step.

    >>> import torch
    >>> from likely.core.random import drawing
    >>> with drawing(0):
    ...     x = annealed_langevin(lambda x, level: -x / 4, [2.0], torch.zeros(2000, 1), steps=200, step=0.2)
    >>> bool((x.std() - 2).abs() < 0.3)
    True
    """
    for level, width in enumerate(widths):
        for _ in range(steps):
            x = langevin_step(x, score(x, level), step * width**2)
            x = x if held is None else held(x, level)
    return x


class Tilted(NamedTuple):
    """States with f and ∇f there, which serve every β."""

    z: Tensor  # (n, *shape)
    value: Tensor  # (n,)
    gradient: Tensor  # (n, *shape)

    @staticmethod
    def at(tilt: Callable[[Tensor], Tensor], z: Tensor) -> Tilted:
        """What f says of these states; outside, no gradient is recorded."""
        with torch.enable_grad():
            z = z.detach().requires_grad_()
            value = tilt(z)
            (gradient,) = torch.autograd.grad(value.sum(), z)
        return Tilted(z.detach(), value.detach(), gradient)

    def score(self, beta: float) -> Tensor:
        """∇ log p."""
        return -self.z - beta * self.gradient

    def log_prob(self, beta: float) -> Tensor:
        """log p up to a constant, (n,)."""
        return -0.5 * self.z.flatten(1).square().sum(1) - beta * self.value


def adjusted_step(
    tilt: Callable[[Tensor], Tensor], at: Tilted, size: float, beta: float = 1.0, gaps: Tensor | None = None
) -> tuple[Tilted, float]:
    """A step of every row by α = size, and the mean probability of acceptance; only `gaps` move, where they are given.

    >>> from likely.core.random import drawing
    >>> with drawing(0), torch.no_grad():  # f = 1½ z²: a variance of ¼
    ...     at = Tilted.at(lambda z: 1.5 * z[:, 0] ** 2, torch.zeros(4000, 1))
    ...     for _ in range(40):
    ...         at, accepted = adjusted_step(lambda z: 1.5 * z[:, 0] ** 2, at, 0.3)
    >>> bool((at.z.std() - 0.5).abs() < 0.05), 0.5 < accepted < 1
    (True, True)
    """
    mask = 1.0 if gaps is None else gaps.to(at.z)
    noise = normal_like(at.z) * mask
    there = Tilted.at(tilt, at.z + (0.5 * size * mask) * at.score(beta) + math.sqrt(size) * noise)
    back = at.z - there.z - (0.5 * size * mask) * there.score(beta)
    gain = there.log_prob(beta) - at.log_prob(beta)
    gain = gain + 0.5 * noise.flatten(1).square().sum(1) - back.flatten(1).square().sum(1) / (2 * size)
    chance = gain.clamp_max(0.0).exp().nan_to_num(0.0)
    uniform = torch.empty_like(chance).uniform_(generator=current_generator(chance.device))
    taken = uniform < chance
    parts = (torch.where(taken.view(-1, *(1,) * (own.ndim - 1)), own, old) for own, old in zip(there, at, strict=True))
    return Tilted(*parts), float(chance.mean())
