"""What warm-up learns from all chains together: the spread of the target, in windows that forget the way there."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Moments", "is_window_end"]

_FIRST = 20  # steps of the first window; each is twice as long as the one before


def is_window_end(index: int, total: int) -> bool:
    """Whether step `index` of `total` ends a window.

    The windows double until two fifths are spent, the last one goes on to four fifths; in what is left the spread
    stays as it is and step sizes settle.

    >>> [index + 1 for index in range(500) if is_window_end(index, 500)]
    [20, 60, 140, 400]
    """
    done, early = index + 1, 0.4 * total
    if done > early:
        return done == int(0.8 * total)
    windows = done // _FIRST + 1
    return done % _FIRST == 0 and windows & (windows - 1) == 0


class Moments(NamedTuple):
    """The running mean (d,) and scatter Σ(x − mean)(x − mean)ᵀ of rows: (d, d), or (d,) for the diagonal alone."""

    seen: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def none(cls, like: Tensor, dense: bool) -> Moments:
        """Those of no rows yet, for rows like (n, d)."""
        size = like.shape[1]
        return cls(0, like.new_zeros(size), like.new_zeros((size, size) if dense else (size,)))

    def add(self, rows: Tensor) -> Moments:
        """With n more rows; sums of squares about the mean, so nothing cancels."""
        n, total = len(rows), self.seen + len(rows)
        centre = rows.mean(0)
        inner, gap = rows - centre, centre - self.mean
        if self.scatter.ndim == 2:
            more = inner.T @ inner + torch.outer(gap, gap) * (self.seen * n / total)
        else:
            more = inner.square().sum(0) + gap.square() * (self.seen * n / total)
        return Moments(total, self.mean + gap * (n / total), self.scatter + more)

    def factor(self) -> Tensor | None:
        """A root of the covariance, lower (d, d) or standard deviations (d,); None if some coordinate never moved.

        Few rows say little of correlations: they are drawn towards 0, and left out if there are fewer rows than ten
        for each coordinate.
        """
        covariance = self.scatter / max(1, self.seen - 1)
        variance = covariance if covariance.ndim == 1 else covariance.diagonal()
        if not bool((variance > 0).all()) or not bool(variance.isfinite().all()):
            return None
        size = len(variance)
        if covariance.ndim == 2 and self.seen >= 10 * size:
            fraction = self.seen / (self.seen + 5 * size)
            root, failed = torch.linalg.cholesky_ex(fraction * covariance + (1 - fraction) * torch.diag(variance))
            if not bool(failed):
                return root
        return variance.sqrt()
