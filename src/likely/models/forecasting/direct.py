"""All steps at once: one network answers for every step of the horizon, and a copula ties them into paths.

z_{t+1 … t+H} | past ~ likelihood(network(past)),   paths: u = Φ(N(0, R)), z = quantile(u),   R of past surprises
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from torch import distributions as td

from ...core.errors import DataError
from ...probability.quantiles import cdf, quantile
from .scale import remade
from .windows import Past, Rows

__all__ = ["Direct", "surprise_correlation"]

MOST_ROWS = 2_000
"""Rows whose surprises are looked at."""


@dataclass(frozen=True)
class Direct:
    """A fitted regressor of `horizon` steps, and the correlation of their surprises."""

    regressor: Any
    lags: tuple[int, ...]
    sequence: bool
    correlation: np.ndarray
    """(horizon, horizon)"""

    def ahead(self, past: Past, steps: int, seed: int) -> td.Distribution:
        """The distribution of each of the next steps: batch (n, steps)."""
        self._check(steps)
        x = torch.from_numpy(self._rows(past)).to(self.regressor.posterior_.dtype)
        whole = self.regressor.posterior_.predictive(self.regressor.likelihood_, x)
        return remade(whole, lambda value: value[:, :steps].double())  # type: ignore[no-any-return]

    def paths(self, past: Past, steps: int, count: int, seed: int) -> np.ndarray:
        """Draws of the next steps together, (count, n, steps)."""
        self._check(steps)
        random, n = np.random.default_rng(seed), len(past.values)
        root = np.linalg.cholesky(self.correlation[:steps, :steps] + 1e-9 * np.eye(steps))
        together = ndtr(random.standard_normal((count, n, steps)) @ root.T)
        return quantile(self.ahead(past, steps, seed), torch.from_numpy(together)).numpy()

    def _check(self, steps: int) -> None:
        if steps > len(self.correlation):
            raise DataError(
                f"{steps} steps ahead are asked for, with gaps at the end of the series, and the model answers for "
                f"horizon={len(self.correlation)}; fit it with a longer horizon, or step by step (horizon=None)."
            )

    def _rows(self, past: Past) -> np.ndarray:
        reach, lags = max(self.lags), np.array(self.lags)
        windows = past.windows(reach)
        if self.sequence:
            return windows[:, reach - lags[::-1], None]
        horizon, known = len(self.correlation), past.known
        if known.shape[-1] and known.shape[1] < horizon:  # later steps do not matter to those that are asked for
            rest = np.repeat(known[:, -1:], horizon - known.shape[1], 1)
            known = np.concatenate([known, rest], 1)
        wide = known[:, :horizon].swapaxes(1, 2).reshape(len(windows), -1)
        return np.concatenate([windows[:, reach - lags], wide], 1)


def surprise_correlation(regressor: Any, rows: Rows) -> np.ndarray:
    """How surprises at one step go with those at another: the correlation of their normal scores, (H, H)."""
    whole = np.flatnonzero(~np.isnan(rows.y).any(1))
    some = whole[:: max(1, len(whole) // MOST_ROWS)]
    horizon = rows.y.shape[1]
    if len(some) < 3:
        return np.eye(horizon)
    x = torch.from_numpy(rows.x[some]).to(regressor.posterior_.dtype)
    distribution = regressor.posterior_.predictive(regressor.likelihood_, x)
    below = cdf(distribution, torch.from_numpy(rows.y[some])).double().numpy()
    scores = ndtri(np.clip(below, 1e-6, 1 - 1e-6))
    scores = scores - scores.mean(0)
    size = np.sqrt((scores**2).sum(0))
    correlation = (scores.T @ scores) / np.maximum(np.outer(size, size), 1e-300)
    shrunk = correlation * (1 - 1 / len(some)) + np.eye(horizon) / len(some)
    np.fill_diagonal(shrunk, 1.0)
    return np.asarray(shrunk)
