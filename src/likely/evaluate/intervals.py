"""Do predictive intervals hold what they promise? Coverage is how often y falls inside.

coverage(level) = mean 1[lower(x) ≤ y ≤ upper(x)],   √(level (1 − level) / n) its standard error if it is right
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import DataError
from .protocol import as_array, need, opened
from .result import Result

__all__ = ["Coverage", "coverage"]


@dataclass(frozen=True)
class Coverage(Result):
    """For each level: how much was covered, its standard error if the intervals are right, and their mean width."""

    levels: np.ndarray
    covered: np.ndarray
    standard_error: np.ndarray
    width: np.ndarray
    count: int

    def __str__(self) -> str:
        lines = zip(self.levels, self.covered, self.standard_error, self.width, strict=True)
        return "\n".join(
            f"{level:.0%} interval: {covered:.1%} covered (± {error:.1%}), mean width {width:.4g}"
            for level, covered, error, width in lines
        )


def coverage(model: Any, X: Any, y: Any, levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95)) -> Coverage:
    """How often y falls inside the central intervals of these levels. Counts may be covered more often than promised.

    >>> from likely import Regressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1))
    >>> y = X[:, 0] + rng.normal(size=2000)
    >>> bool(abs(coverage(Regressor().fit(X, y), X, y, levels=[0.9]).covered[0] - 0.9) < 0.02)
    True
    """
    model, X = opened(model, X)
    need(model, ("predict_interval",), "Coverage")
    asked = np.atleast_1d(np.asarray(levels, dtype=float))
    if not asked.size or not ((asked > 0) & (asked < 1)).all():
        raise DataError(f"levels must lie strictly between 0 and 1; found {levels!r}.")
    target = as_array(y).astype(np.float64)
    known = ~np.isnan(target)
    covered, width = [], []
    for level in asked:
        lower, upper = model.predict_interval(X, level=float(level))
        if lower.shape != target.shape:
            raise DataError(f"y has shape {target.shape}; the intervals have {lower.shape}.")
        covered.append(((lower <= target) & (target <= upper))[known].mean())
        width.append((upper - lower)[known].mean())
    count = int(known.sum())
    return Coverage(asked, np.array(covered), np.sqrt(asked * (1 - asked) / count), np.array(width), count)
