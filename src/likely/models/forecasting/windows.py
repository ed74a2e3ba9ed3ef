"""Windows: the past of each step as a row of numbers, and what followed as its target.

row t = [z_{t−l} for l in lags, covariates at t],   target = z_t, or z_t … z_{t+H−1} at once
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["Past", "Rows", "filled", "training_rows"]


class Past(NamedTuple):
    """Where to forecast from: n places in series of one channel, in units of the model."""

    values: tuple[np.ndarray, ...]
    """(T,) of each place's series up to that place, without a gap."""
    known: np.ndarray
    """(n, steps, covariates) of the steps to come."""
    before: tuple[np.ndarray, ...] = ()
    """(T, covariates) of each place's past, where the network reads it as a sequence."""

    def windows(self, length: int) -> np.ndarray:
        """The last values of each, (n, length)."""
        return np.stack([values[len(values) - length :] for values in self.values])


class Rows(NamedTuple):
    """What a network learns from."""

    x: np.ndarray
    """(n, width), or (n, context, 1 + covariates) of a sequence."""
    y: np.ndarray
    """(n,) or (n, horizon), NaN where missing."""
    owner: np.ndarray
    """(n,) the series of each."""
    at: np.ndarray
    """(n,) the step that the target begins at."""


def filled(values: np.ndarray, season: int = 1) -> np.ndarray:
    """A series (T,) without gaps: on the line between its neighbours, over whole seasons where there are some.

    >>> filled(np.array([1.0, np.nan, 3.0, np.nan]))
    array([1., 2., 3., 3.])
    """
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    step, seen = np.arange(len(values)), ~gaps
    whole = np.interp(step, step[seen], values[seen])
    if season > 1 and seen.sum() >= 2 * season:  # the pattern of the season around the line
        rest = np.where(seen, values - _level(whole, season), np.nan)
        folded = np.full((-(-len(values) // season), season), np.nan)
        folded.ravel()[: len(values)] = rest
        counts = (~np.isnan(folded)).sum(0)
        pattern = np.where(counts > 0, np.nansum(folded, 0) / np.maximum(counts, 1), 0.0)
        line = np.interp(step, step[seen], (values - pattern[step % season])[seen])
        whole = line + pattern[step % season]
    return np.where(gaps, whole, values)


def _level(values: np.ndarray, season: int) -> np.ndarray:
    """A moving mean over one season."""
    padded = np.pad(values, (season // 2, season - 1 - season // 2), mode="edge")
    return sliding_window_view(padded, season).mean(1)


def training_rows(
    values: list[np.ndarray],
    whole: list[np.ndarray],
    known: list[np.ndarray],
    lags: tuple[int, ...],
    horizon: int | None,
    sequence: bool,
    targets: list[np.ndarray] | None = None,
) -> Rows:
    """Rows of all series: `values` have gaps, `whole` have them filled, `targets` are values in other units.

    >>> rows = training_rows([np.arange(4.0)], [np.arange(4.0)], [np.empty((4, 0))], (1, 2), None, False)
    >>> rows.x.tolist(), rows.y.tolist()
    ([[1.0, 0.0], [2.0, 1.0]], [2.0, 3.0])
    """
    reach, ahead = max(lags), horizon or 1
    parts = []
    for owner, (own, full, features) in enumerate(zip(values, whole, known, strict=True)):
        count = len(own) - reach - ahead + 1
        if count < 1:
            continue
        at = np.arange(reach, reach + count)
        target = own if targets is None else targets[owner]
        y = sliding_window_view(target[reach:], ahead)
        seen = ~np.isnan(y).all(1)
        at, y = at[seen], y[seen]
        ahead_known = sliding_window_view(features[reach:], ahead, 0)[seen] if features.shape[1] else None
        x = features_of(full, features, at, lags, sequence, ahead_known)
        parts.append(Rows(x, y if horizon else y[:, 0], np.full(len(at), owner), at))
    if not parts:
        width = (0, len(lags))
        return Rows(np.empty(width), np.empty(0), np.empty(0, int), np.empty(0, int))
    return Rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def features_of(
    full: np.ndarray,
    features: np.ndarray,
    at: np.ndarray,
    lags: tuple[int, ...],
    sequence: bool,
    ahead_known: np.ndarray | None,
) -> np.ndarray:
    """What a network sees before each step `at`."""
    if sequence:
        past = full[at[:, None] - np.array(lags[::-1])]  # the oldest first
        steps = features[at[:, None] - np.array(lags[::-1]) + 1]  # what is known of the step that follows
        return np.concatenate([past[..., None], steps], -1)
    past = full[at[:, None] - np.array(lags)]
    return past if ahead_known is None else np.concatenate([past, ahead_known.reshape(len(at), -1)], 1)
