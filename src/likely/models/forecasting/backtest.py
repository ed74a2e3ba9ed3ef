"""A backtest: forecasts from several origins beside what came, and how good they were.

weighted quantile loss = mean over quantiles q of 2 Σ |y − ŷ_q| · (q if y > ŷ_q else 1 − q) / Σ |y|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["LEVELS", "Backtest"]

LEVELS = np.arange(1, 10) / 10
"""The quantiles that are kept."""


@dataclass(frozen=True)
class Backtest:
    """Forecasts (origins, …, steps, …) in the form of the series.

    >>> flat = np.zeros((1, 2))
    >>> Backtest(np.array([3]), flat + 2.0, flat + 1.0, np.stack([flat + 1.0] * 9)).mae
    1.0
    """

    origins: np.ndarray
    """(k,) how many rows each forecast had seen."""
    actual: np.ndarray
    """(k, …) what came; NaN where it is not known."""
    mean: np.ndarray
    """(k, …)"""
    quantiles: np.ndarray
    """(9, k, …) the quantiles 0.1, …, 0.9."""

    @property
    def mse(self) -> float:
        """The mean squared error of the means."""
        return float(np.nanmean((self.actual - self.mean) ** 2))

    @property
    def mae(self) -> float:
        """The mean absolute error of the means."""
        return float(np.nanmean(np.abs(self.actual - self.mean)))

    @property
    def weighted_quantile_loss(self) -> float:
        """Averaged over quantiles and origins; smaller is better."""
        levels = LEVELS.reshape(-1, *[1] * self.actual.ndim)
        away = self.actual - self.quantiles
        loss = 2 * np.maximum(levels * away, (levels - 1) * away)
        rest = tuple(range(2, loss.ndim))
        size = np.nansum(np.abs(self.actual), tuple(range(1, self.actual.ndim)))
        return float((np.nansum(loss, rest).mean(0) / np.maximum(size, 1e-300)).mean())

    @property
    def coverage(self) -> float:
        """How often the central interval of 80 % held what came."""
        known = ~np.isnan(self.actual)
        inside = (self.actual >= self.quantiles[0]) & (self.actual <= self.quantiles[-1])
        return float(inside[known].mean())

    def __str__(self) -> str:
        return (
            f"{len(self.origins)} origins: mean absolute error {self.mae:.4g}, weighted quantile loss "
            f"{self.weighted_quantile_loss:.4f}, 80% intervals hold {self.coverage:.0%}"
        )
