"""Modes: of a known mixture of groups, how many does a sample reach, and how evenly?

KL(q ‖ π) = Σₖ qₖ log(qₖ / πₖ)      of the sample's fractions q to those of the mixture, π
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import DataError
from ..protocol import as_array
from ..result import Result

__all__ = ["Modes", "modes"]


@dataclass(frozen=True)
class Modes(Result):
    """How many centres were reached, the fraction of rows near one, their counts, and the reverse KL divergence."""

    reached: int
    count: int
    near: float
    counts: np.ndarray
    reverse_kl: float

    def __str__(self) -> str:
        return f"{self.reached} of {self.count} modes, {self.near:.1%} of rows near one, KL {self.reverse_kl:.3f}"


def modes(generated: Any, centres: Any, scale: float, *, within: float = 3.0, weights: Any = None) -> Modes:
    """Which of the centres rows come near to (within so many `scale`s of it), and how often.

    >>> centres = np.array([[0.0, 0.0], [10.0, 0.0]])
    >>> modes([[0.1, 0.0], [0.2, 0.1], [5.0, 0.0]], centres, scale=0.5)
    Modes(reached=1, count=2, near=0.6666666666666666, counts=array([2, 0]), reverse_kl=0.6931471805599453)
    """
    rows, middles = (np.asarray(as_array(values), dtype=np.float64) for values in (generated, centres))
    if rows.ndim != 2 or middles.ndim != 2 or rows.shape[1] != middles.shape[1] or not len(rows):
        raise DataError(f"generated {rows.shape} and centres {middles.shape} must have the same number of columns.")
    if not scale > 0 or not within > 0:
        raise DataError(f"scale={scale!r} and within={within!r} must be above 0.")
    prior = np.full(len(middles), 1 / len(middles)) if weights is None else np.asarray(weights, dtype=np.float64)
    if prior.shape != (len(middles),) or (prior <= 0).any():
        raise DataError(f"weights must have a number above 0 for each of the {len(middles)} centres.")
    gaps = np.sqrt(np.square(rows[:, None] - middles).sum(-1))
    nearest = gaps.argmin(1)
    near = gaps[np.arange(len(rows)), nearest] <= within * scale
    counts = np.bincount(nearest[near], minlength=len(middles))
    fraction = counts[counts > 0] / max(1, counts.sum())
    divergence = (
        float((fraction * np.log(fraction / (prior / prior.sum())[counts > 0])).sum()) if len(fraction) else np.inf
    )
    return Modes(int((counts > 0).sum()), len(middles), float(near.mean()), counts, divergence)
