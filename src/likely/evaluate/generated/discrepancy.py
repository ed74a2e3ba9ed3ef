"""Maximum mean discrepancy: how far apart two samples are for the functions of a kernel's space, with a p-value.

    MMD² = E k(x, x′) + E k(y, y′) − 2 E k(x, y)          unbiased: a row is not paired with itself

0 if and only if the distributions are equal (for a Gaussian kernel). Under that hypothesis rows may change places
between the samples: permutations give the p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...core.errors import DataError
from ...core.random import seed_of
from ..result import Result
from .pairs import pair_of

__all__ = ["Discrepancy", "mmd"]


@dataclass(frozen=True)
class Discrepancy(Result):
    """MMD² (unbiased, so it may be below 0), the p-value, and the length scale of the kernel."""

    squared: float
    p_value: float
    lengthscale: float

    def __str__(self) -> str:
        return f"MMD² = {self.squared:.3g}, p = {self.p_value:.2g}"


def mmd(
    real: Any,
    generated: Any,
    *,
    lengthscale: float | None = None,
    permutations: int = 200,
    most: int = 2_000,
    random_state: Any = 0,
) -> Discrepancy:
    """MMD² with k(x, y) = exp(−‖x − y‖²/2ℓ²) on standardised rows; ℓ is the median distance if not given.

    Of larger samples, `most` rows of each are taken.

    >>> rng = np.random.default_rng(0)
    >>> result = mmd(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 1.0)
    >>> result.p_value < 0.01
    True
    """
    if lengthscale is not None and not lengthscale > 0:
        raise DataError(f"lengthscale={lengthscale!r} must be above 0.")
    if permutations < 1:
        raise DataError(f"permutations={permutations!r} must be 1 or more.")
    rng = np.random.default_rng(seed_of(random_state))
    samples = [
        torch.from_numpy(rows[rng.permutation(len(rows))[:most]]) for rows in pair_of(real, generated).in_units()
    ]
    first, points = len(samples[0]), torch.cat(samples)
    squared = torch.cdist(points, points).square()
    if lengthscale is None:
        above = squared[torch.triu(torch.ones_like(squared, dtype=torch.bool), 1)]
        lengthscale = float(above.median().sqrt()) or 1.0
    kernel = torch.exp(squared / (-2 * lengthscale**2)).fill_diagonal_(0.0)
    signs = torch.full((len(points), 1 + permutations), -1.0 / (len(points) - first), dtype=torch.float64)
    for column in range(1 + permutations):
        chosen = np.arange(first) if column == 0 else rng.permutation(len(points))[:first]
        signs[torch.from_numpy(chosen), column] = 1.0 / first
    values = _statistics(kernel, signs, first)
    extreme = int((values[1:] >= values[0]).sum())
    return Discrepancy(float(values[0]), (1 + extreme) / (1 + permutations), float(lengthscale))


def _statistics(kernel: torch.Tensor, signs: torch.Tensor, first: int) -> torch.Tensor:
    """MMD² of each column's division of the rows, whose weights are 1/n and −1/m."""
    second = len(kernel) - first
    inside = (signs > 0).double()
    outside = 1 - inside
    own = (inside * (kernel @ inside)).sum(0) / (first * (first - 1))
    other = (outside * (kernel @ outside)).sum(0) / (second * (second - 1))
    across = (inside * (kernel @ outside)).sum(0) / (first * second)
    return own + other - 2 * across
