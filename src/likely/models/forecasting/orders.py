"""How far a series looks back: the season that it has, and the order of an autoregression that explains it best.

AICc(p) = N log(RSS_p / N) + 2 k N / (N − k − 1),   k = p + 2,   the same N targets for all p
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import DataError, SpecError
from ...core.spec import is_integer

__all__ = ["choose_lags", "choose_season", "corrected_criterion"]

ORDERS = 24
"""The highest order that a series without a season is tried with, unless it is long."""
ROWS_PER_LAG, SEASONAL_ROWS_PER_LAG = 5, 4
"""Steps that a series must have for each lag that it is tried with."""
LONG = 20
"""A series with more than LONG × ORDERS steps is tried with higher orders."""
HIGHEST = 400
STRONG, AGAIN = 0.4, 0.2
"""Autocorrelations of the differences at a season and at two of them, from which a season is seen without dates."""


def choose_season(asked: Any, calendar: int, values: list[np.ndarray]) -> int:
    """Steps of a season; 1 means none. The calendar says it, or else the autocorrelation does.

    >>> choose_season("auto", 0, [np.tile([0.0, 1.0, 5.0, 2.0], 12)])
    4
    """
    if asked is None:
        return 1
    if is_integer(asked):
        return int(asked)
    if asked != "auto":
        raise SpecError(f'season={asked!r}: season must be "auto", None, or the number of steps in it.')
    if calendar:
        return calendar
    longest = max(values, key=len)
    return _seen_season(np.diff(longest))


def _seen_season(moves: np.ndarray) -> int:
    limit = min(len(moves) // 3, 370)
    centred = moves - moves.mean() if len(moves) else moves
    power = float(centred @ centred)
    if limit < 3 or power <= 0:
        return 1
    size = 1 << (2 * len(centred) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(spectrum, size)[: 2 * limit + 1] / power
    inner = correlation[1 : limit + 1]
    peaks = [
        lag
        for lag in range(2, limit)
        if correlation[lag] >= STRONG
        and correlation[lag] >= max(correlation[lag - 1], correlation[lag + 1])
        and correlation[2 * lag] >= AGAIN
    ]
    return max(peaks, key=lambda lag: (round(float(inner[lag - 1]), 2), -lag)) if peaks else 1


def choose_lags(asked: Any, season: int, values: list[np.ndarray], horizon: int | None) -> tuple[int, ...]:
    """The lags in force. "auto": orders of whole seasons and one, or any order where there is no season, by AICc.

    >>> rng = np.random.default_rng(0)
    >>> z = [0.0, 0.0]
    >>> for _ in range(500):
    ...     z.append(1.2 * z[-1] - 0.6 * z[-2] + rng.normal())
    >>> len(choose_lags("auto", 1, [np.array(z)], None)) < 5
    True
    """
    longest = max(len(own) for own in values)
    if not isinstance(asked, str):
        lags = _given(asked)
    elif asked == "auto":
        lags = tuple(range(1, _order(season, values, (horizon or 1) - 1) + 1))
    else:
        raise SpecError(f'lags={asked!r}: lags must be "auto", a number of past steps, or a list of lags.')
    need = max(lags) + (horizon or 1) + 1
    if longest < need:
        raise DataError(
            f"The series is too short: it has {longest} steps, and lags up to {max(lags)} with "
            f"{horizon or 1} ahead need at least {need}; use fewer lags or a longer series."
        )
    return lags


def _given(asked: Any) -> tuple[int, ...]:
    lags = tuple(range(1, asked + 1)) if is_integer(asked) else asked
    whole = isinstance(lags, tuple | list) and len(lags) > 0 and all(is_integer(int(lag)) for lag in lags)
    if not whole or len(set(lags)) < len(lags):
        raise SpecError(f"lags={asked!r}: lags must be a positive integer or a list of different ones.")
    return tuple(sorted(int(lag) for lag in lags))


def _order(season: int, values: list[np.ndarray], more: int) -> int:
    rows = sum(max(len(own) - more, 0) for own in values)
    longest = max(len(own) for own in values) - more
    seasons = season if season > 1 and season < min(rows // SEASONAL_ROWS_PER_LAG, longest // 3, HIGHEST) else 0
    limit = min(rows // (SEASONAL_ROWS_PER_LAG if seasons else ROWS_PER_LAG), longest // 3, HIGHEST)
    if limit < 1:
        return 1
    high = min(limit, max(2 * seasons + 1 if seasons else ORDERS, rows // LONG))
    candidates = list(range(seasons + 1, high + 1, seasons)) if seasons else list(range(1, high + 1))
    criterion = corrected_criterion(values, max(candidates))
    return min(candidates, key=lambda order: float(criterion[order]))


def corrected_criterion(values: list[np.ndarray], highest: int) -> np.ndarray:
    """AICc of the orders 0 … highest, all of them from one triangular factor.

    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=300))
    >>> int(corrected_criterion([walk], 5).argmin()) > 0
    True
    """
    blocks = []
    for own in values:
        at = np.arange(highest, len(own))
        if len(at):
            lagged = own[at[:, None] - np.arange(1, highest + 1)]
            blocks.append(np.column_stack([np.ones(len(at)), lagged, own[at]]))
    rows = np.concatenate(blocks)
    root: np.ndarray = np.asarray(np.linalg.qr(rows, mode="r"))
    left = np.zeros(highest + 2)
    left[: len(root)] = root[:, -1] ** 2
    residual = np.cumsum(left[::-1])[::-1][1:]  # Σ of squares that the first p lags leave
    count, parameters = len(rows), np.arange(highest + 1) + 2
    floor = 1e-20 * max(float(np.sum(rows[:, -1] ** 2)), 1e-300)
    free = np.maximum(count - parameters - 1, 0.5)
    return count * np.log(np.maximum(residual, floor) / count) + 2 * parameters * count / free  # type: ignore[no-any-return]
