"""Exponential smoothing: level, slope and season, each corrected by a fraction of every surprise.

z_t = l + φ b + s_t + e_t        l' = l + φ b + α e_t        b' = φ b + β e_t        s' = s_t + γ e_t

As a state space: the surprise e_t is a state as well, so that the Kalman filter gives forecasts, gaps and all. On
logarithms (transform="log"), trend and season multiply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numba import njit
from scipy.ndimage import generate_binary_structure, minimum_filter
from scipy.optimize import minimize
from torch import distributions as td

from ...core.errors import DataError
from ...core.spec import require
from ...data.rows import Ragged
from ..linear_gaussian.kalman.draws import draw_series
from ..linear_gaussian.kalman.forecast import ahead, last_state, step_ahead
from ..linear_gaussian.kalman.recursion import System, observe, run_filter
from ..linear_gaussian.kalman.small_matrices import COMPILED
from .dynamics import Dynamics
from .windows import Past

__all__ = ["ExponentialSmoothing", "Smoother", "fit_smoothing"]

LOW, HIGH = 1e-4, 0.9999
"""Bounds of the fractions, and of φ ≥ 0.8, as statsmodels has them."""
GRID = ((0.003, 0.01, 0.03, 0.1, 0.3, 0.7, 0.95), (0.02, 0.2, 0.6, 0.98), (0.05, 0.5), (0.82, 0.93, 0.98))
"""α, β / α, γ / (1 − α) and φ at which the likelihood, which has several tops, is looked at before it is climbed."""
CLIMBS = 6
"""At most, each from a point of the grid that is more likely than those beside it."""


class ExponentialSmoothing(Dynamics):
    """Exponential smoothing with additive errors: simple, with a (damped) trend, with a season.

    The fractions α, β, γ and the damping φ maximise the likelihood; first level, slope and season are solved for.

    >>> from likely import Forecaster
    >>> model = Forecaster(network=ExponentialSmoothing(trend="additive", season=False), transform="none")
    >>> model.fit(np.arange(20.0)).predict(3).round(3)
    array([20., 21., 22.])
    """

    trend: Literal["none", "additive", "damped"] = "damped"
    season: bool = True

    def validate(self) -> None:
        """Only these words."""
        require(self.trend in ("none", "additive", "damped"), self, "trend", '"none", "additive" or "damped"')


@dataclass(frozen=True)
class Smoother:
    """Fitted smoothing: what it consists of, its fractions, and σ."""

    slope: bool
    period: int
    """Steps of the season; 1 if there is none."""
    fractions: np.ndarray
    """α, β, γ, φ, (4,)"""
    scale: float

    def ahead(self, past: Past, steps: int, seed: int) -> td.Distribution:
        """The distribution of each of the next steps: batch (n, steps)."""
        mean, variance = [], []
        for values in past.values:
            system, filtered = self._filtered(values)
            normal = ahead(system, filtered, len(values) - 1, steps)
            mean.append(normal.mean[:, 0])
            variance.append(normal.variance[:, 0])
        return td.Normal(torch.stack(mean), torch.stack(variance).sqrt(), validate_args=False)

    def paths(self, past: Past, steps: int, count: int, seed: int) -> np.ndarray:
        """Draws of the next steps together, (count, n, steps)."""
        random, drawn = np.random.default_rng(seed), []
        for values in past.values:
            system, filtered = self._filtered(values)
            start = step_ahead(system, *last_state(filtered, -1))
            drawn.append(draw_series(system, *start, (count, steps), random)[0][..., 0])
        return np.stack(drawn, 1)

    def step_log_prob(self, values: np.ndarray) -> np.ndarray:
        """log p(z_t | before), (T,): NaN where the value is missing."""
        system, filtered = self._filtered(values)
        mean = filtered.predicted @ system.observation[0]
        spread = np.einsum(
            "i,tij,j->t", system.observation[0], filtered.gains.predicted[filtered.gains.step], system.observation[0]
        )
        return -0.5 * (np.log(2 * np.pi * spread) + (values - mean) ** 2 / spread)  # type: ignore[no-any-return]

    def system(self, first: np.ndarray) -> System:
        """The state space [level, slope, seasons, surprise] that begins at `first`."""
        a, b, c, damping = self.fractions
        m = self.period if self.period > 1 else 0
        size = 2 + m + 1
        move, see, gain = np.zeros((size, size)), np.zeros((1, size)), np.zeros(size)
        move[0, 0], move[0, 1], move[1, 1] = 1.0, damping, damping
        see[0, 0], see[0, 1], see[0, -1] = 1.0, damping, 1.0
        gain[0], gain[1] = a, b
        if m:  # the season that is due stands first, and goes to the end once it was seen
            move[2 : 1 + m, 3 : 2 + m] = np.eye(m - 1)
            move[1 + m, 2] = 1.0
            see[0, 2], gain[1 + m] = 1.0, c
        move[:, -1] += gain
        noise = np.zeros((size, size))
        noise[-1, -1] = self.scale**2
        zero, nothing = np.zeros(size), np.zeros((1, 1))
        return System(move, zero, noise, see, np.zeros(1), nothing, np.append(first, 0.0), noise.copy())

    def _filtered(self, values: np.ndarray) -> Any:
        system = self.system(first_state(values, self.slope, self.period, self.fractions))
        rows = Ragged(torch.from_numpy(np.ascontiguousarray(values[:, None])), torch.tensor([0, len(values)]))
        return system, run_filter(observe(rows), system)


def fit_smoothing(spec: ExponentialSmoothing, values: list[np.ndarray], season: int, weight: np.ndarray) -> Smoother:
    """The most likely fractions for all series together, each with its own first state."""
    period = season if spec.season and season > 1 else 1
    slope, damped = spec.trend != "none", spec.trend == "damped"
    states = 1 + slope + (period - 1 if period > 1 else 0)
    if max(len(own) for own in values) < states + 4:
        raise DataError(
            f"The series is too short: it has {max(len(own) for own in values)} steps, and {spec!r} with a season of "
            f"{period} needs at least {states + 4}; use fewer parts, or season=None."
        )
    learned = [True, slope, period > 1, damped]

    def fractions(free: np.ndarray) -> np.ndarray:
        whole = np.array([0.0, 0.0, 0.0, 1.0 if slope else 0.0])
        whole[learned] = free
        whole[1] = whole[0] * whole[1]  # β < α
        whole[2] = (1 - whole[0]) * whole[2]  # γ < 1 − α
        return whole

    def loss(free: np.ndarray) -> float:
        total = count = 0.0
        for own, times in zip(values, weight, strict=True):
            surprise = _surprises(own, slope, period, fractions(free))[0]
            total += times * float(surprise @ surprise)
            count += times * int((~np.isnan(own)).sum())
        return 0.5 * count * np.log(max(total, 1e-300) / count) / count

    bounds = [(LOW, HIGH)] * sum(learned[:3]) + [(0.8, 0.98 if damped else 1.0)] * damped
    axes = [axis for axis, on in zip(GRID, learned, strict=True) if on]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    losses = np.apply_along_axis(loss, -1, grid)
    lowest = minimum_filter(losses, footprint=generate_binary_structure(losses.ndim, 1), mode="nearest") == losses
    starts = grid[lowest][np.argsort(losses[lowest])][:CLIMBS]
    best = min((minimize(loss, s, method="L-BFGS-B", bounds=bounds) for s in starts), key=lambda fit: float(fit.fun))
    chosen = fractions(best.x)
    squares = sum(
        times * float(np.sum(_surprises(own, slope, period, chosen)[0] ** 2))
        for own, times in zip(values, weight, strict=True)
    )
    free = sum(times * ((~np.isnan(own)).sum() - states) for own, times in zip(values, weight, strict=True))
    free = max(float(free) - sum(learned), 1.0)
    size = max(float(np.nanmax(np.abs(np.concatenate(values)))), 1e-300)
    return Smoother(slope, period, chosen, max(float(np.sqrt(squares / free)), 1e-9 * size))


def first_state(values: np.ndarray, slope: bool, period: int, fractions: np.ndarray) -> np.ndarray:
    """Level, slope and seasons before the first step that leave the smallest surprises, (2 + seasons,)."""
    return _surprises(values, slope, period, fractions)[1]


def _surprises(values: np.ndarray, slope: bool, period: int, fractions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The surprises e (seen ones), and the first state that makes their squares least: e is linear in it."""
    m = period if period > 1 else 0
    table = _run(values, m, fractions)  # (T, 1 + states): surprises of the series, and of first states alone
    seen = ~np.isnan(values)
    use = np.array([0, *([1] if slope else []), *range(2, 2 + m)])
    first, state = np.zeros(2 + m), table[seen][:, 1:]
    solved = np.linalg.lstsq(state[:, use], -table[seen, 0], rcond=1e-10)[0]
    first[use] = solved
    if m:  # the mean of the seasons belongs to the level
        first[0], first[2:] = first[0] + first[2:].mean(), first[2:] - first[2:].mean()
    return table[seen, 0] + state @ first, first


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _run(values: np.ndarray, m: int, fractions: np.ndarray) -> np.ndarray:
    """Surprises (T, 1 + 2 + m) of the series from a state of zeros, and of zeros from each unit state."""
    a, b, c, damping = fractions[0], fractions[1], fractions[2], fractions[3]
    columns = 3 + m
    out = np.zeros((values.shape[0], columns))
    level, slope, season = np.zeros(columns), np.zeros(columns), np.zeros((m + 1, columns))
    level[1], slope[2] = 1.0, 1.0
    for i in range(m):
        season[i, 3 + i] = 1.0
    for t in range(values.shape[0]):
        now = t % m if m > 0 else 0
        missing = np.isnan(values[t])
        for j in range(columns):
            expected = level[j] + damping * slope[j] + (season[now, j] if m > 0 else 0.0)
            surprise = -expected
            if j == 0 and not missing:
                surprise += values[t]
            if missing:
                surprise = 0.0
            out[t, j] = surprise
            level[j] += damping * slope[j] + a * surprise
            slope[j] = damping * slope[j] + b * surprise
            if m > 0:
                season[now, j] += c * surprise
    return out
