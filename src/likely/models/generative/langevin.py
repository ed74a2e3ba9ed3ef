"""Langevin dynamics: draws from p by its score alone, all rows at once.

    x ← x + ½α s(x) + √α ε                       at small α and in the long run, x ~ p
    annealed: with the scores of p at falling noise σ₁ > … > σ_L and α = step · σᵢ²

Noise joins what p keeps apart, so rows reach every mode at the first levels, in the right proportions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from ...core.random import normal_like

__all__ = ["annealed_langevin", "langevin_step"]


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
