"""A picture of a series and what comes next: what was seen, the smoothed signal in it, and a fan of intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from ..core.errors import DataError
from ..core.takes import takes
from ..evaluate.protocol import as_array
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, percent, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["forecast"]


@takes("a fitted KalmanFilter, and the series X", "forecast")
def forecast(
    model: Any,
    X: Any,
    steps: int = 12,
    *,
    actual: Any = None,
    levels: Sequence[float] = (0.5, 0.9),
    column: int = 0,
    inverse: Callable[[np.ndarray], np.ndarray] | None = None,
    times: Any = None,
    label: str = "x",
    x_label: str = "step",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """One column of a series, its smoothed signal, and the next `steps` steps with central intervals of these levels.

    `actual` are values of those steps that the model has not seen; the ones outside every interval stand out. `inverse`
    brings all back to their own scale if the model was fitted to, say, logarithms. `times` are those of the rows of X,
    or of the steps to come as well.

    >>> from likely import KalmanFilter
    >>> from likely.inference import EM
    >>> X = np.cumsum(np.random.default_rng(0).normal(size=(40, 1)), 0)
    >>> model = KalmanFilter.local_level(inference=EM(max_iter=500)).fit(X)
    >>> forecast(model, X, steps=5, label="height (m)").get_ylabel()
    'height (m)'
    """
    back = (lambda values: values) if inverse is None else inverse
    seen = _one_series(X, column)
    when, later = _times(times, len(seen), steps)
    signal, deviation = _signal(model, X, column)
    ahead = model.forecast(X, steps=steps)
    mean, spread = ahead.mean[:, column], np.sqrt(ahead.distribution.variance.numpy()[:, column])
    joined, widest = np.concatenate([when[-1:], later]), max(levels)
    ax = axes_of(ax, 7.6, 4.2)
    names: dict[str, tuple[float, str]] = {}
    for rank, level in enumerate(sorted(levels, reverse=True)):
        width = float(ndtri((1 + level) / 2))
        # the fan opens at the end of the signal
        middle = np.concatenate([signal[-1:], mean])
        half = width * np.concatenate([deviation[-1:], spread])
        opacity = 0.16 + 0.16 * rank
        low, high = back(middle - half), back(middle + half)
        ax.fill_between(joined, low, high, color=MAIN, alpha=opacity, linewidth=0, label=percent(level))
        names[percent(level)] = (float(high[-1]), MUTED)
    half = float(ndtri((1 + widest) / 2)) * deviation
    ax.fill_between(when, back(signal - half), back(signal + half), color=MAIN, alpha=0.16, linewidth=0, label="signal")
    ax.plot(when, back(signal), color=MAIN, linewidth=1.1, label="smoothed")
    ax.plot(later, back(mean), color=MAIN, linewidth=1.8, label="forecast")
    names["forecast"] = (float(back(mean)[-1]), MAIN)
    size = 3.2 if len(seen) <= 300 else 1.6
    ax.plot(when, back(seen), "o", color=INK, alpha=0.6, markersize=size, markeredgewidth=0, label="seen")
    ax.axvline(when[-1], color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    fan = " and ".join(percent(level) for level in sorted(levels))
    finding, rings = f"{label}: the next {steps} steps, with {fan} intervals", ""
    if actual is not None:
        rings = " · rings: what came"
        finding = _draw_actual(ax, later, as_array(actual), back, mean, spread, widest, column)
    ax.margins(x=0.02)
    side_labels(ax, later[-1], names)
    note = f"dots: seen · thin line: smoothed signal · thick line: forecast{rings}"
    return finish(ax, title=titled(title, finding), note=note, x=x_label, y=label)


def _draw_actual(
    ax: Axes,
    later: np.ndarray,
    actual: np.ndarray,
    back: Callable[[np.ndarray], np.ndarray],
    mean: np.ndarray,
    spread: np.ndarray,
    level: float,
    column: int,
) -> str:
    """What came after all, and the finding."""
    values = (actual if actual.ndim == 1 else actual[:, column]).astype(float)
    if len(values) > len(later):
        raise DataError(f"actual has {len(values)} values, but the forecast has {len(later)} steps.")
    known = np.isfinite(values)
    away = np.abs(values - mean[: len(values)]) / spread[: len(values)]
    inside = away <= float(ndtri((1 + level) / 2))
    for group, colour, name in ((inside, INK, "inside"), (~inside & known, ACCENT, "outside")):
        style: dict[str, Any] = {"markersize": 4.2, "markerfacecolor": "white", "markeredgewidth": 1.2, "color": colour}
        ax.plot(later[: len(values)][group], back(values[group]), "o", label=name, **style)
    return f"{int(inside.sum())} of {int(known.sum())} values that came lie in their {percent(level)} interval"


def _signal(model: Any, X: Any, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of what a column would be without noise, given all observations."""
    means, covariances = model.smooth(X)
    row = model.observation_[column]
    return means @ row + model.observation_offset_[column], np.sqrt(np.einsum("i,tij,j->t", row, covariances, row))


def _one_series(X: Any, column: int) -> np.ndarray:
    values = as_array(X).astype(float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2:
        raise DataError(f"The picture is of one series (T, p); X has shape {values.shape}.")
    if not -values.shape[1] <= column < values.shape[1]:
        raise DataError(f"column={column}: X has {values.shape[1]} columns, counted from 0.")
    return values[:, column]


def _times(times: Any, rows: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The times of the rows and of the steps to come; those go on at the last distance, if they are not given."""
    when = np.arange(rows + steps) if times is None else np.asarray(times)
    if len(when) == rows + steps:
        return when[:rows], when[rows:]
    if len(when) != rows or rows < 2:
        raise DataError(f"times has {len(when)} values; X has {rows} rows, and {steps} steps are to come.")
    return when, when[-1] + (when[-1] - when[-2]) * np.arange(1, steps + 1)
