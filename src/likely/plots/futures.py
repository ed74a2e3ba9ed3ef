"""A picture of what follows a series: its past, the median of each step to come, and a fan of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..core.errors import DataError
from ..core.takes import takes
from ..probability.quantiles import quantile
from .style import INK, MAIN, MUTED, axes_of, finish, percent, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["future"]


@takes("a fitted Forecaster, and how many steps", "series_")
def future(
    model: Any,
    steps: int = 12,
    *,
    series: int = 0,
    channel: int = 0,
    levels: Sequence[float] = (0.5, 0.9),
    past: int | None = None,
    covariates: Any = None,
    label: str | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The series that a `Forecaster` was fitted to, and the next `steps` steps with central intervals of these levels.

    `past` is how many of its last rows are shown: at most eight times the steps, if None. `covariates` are those of the
    steps to come, if the model has some.

    >>> from likely import Forecaster
    >>> model = Forecaster(lags=2, transform="none").fit(np.sin(np.arange(40.0)) + 0.1 * np.cos(np.arange(40.0) ** 2))
    >>> future(model, 6, label="height (m)").get_ylabel()
    'height (m)'
    """
    data = model.series_
    if not 0 <= series < len(data) or not 0 <= channel < len(data.channels):
        raise DataError(f"series={series}, channel={channel}: there are {len(data)} series of {len(data.channels)}.")
    levels = sorted(levels, reverse=True)
    ends = [(1 - level) / 2 for level in levels] + [0.5] + [(1 + level) / 2 for level in reversed(levels)]
    distribution = model.predict_dist(steps, future=covariates)
    p = torch.tensor(ends, dtype=torch.float64).reshape(-1, *[1] * len(distribution.batch_shape))
    bands = quantile(distribution, p).numpy().reshape(len(ends), -1, steps, len(data.channels))[:, series, :, channel]
    seen = data.values[series][:, channel]
    rows = len(seen)
    first = max(0, rows - (max(8 * steps, 60) if past is None else past))
    when = data.calendar.times(data.starts[series], first, rows - first)
    later = data.calendar.times(data.starts[series], rows, steps)
    ax = axes_of(ax, 7.6, 4.2)
    known = np.flatnonzero(~np.isnan(seen))[-1]
    joined = np.concatenate([data.calendar.times(data.starts[series], int(known), 1), later])
    names: dict[str, tuple[float, str]] = {}
    for rank, level in enumerate(levels):
        low, high = (np.concatenate([seen[known : known + 1], part]) for part in (bands[rank], bands[-1 - rank]))
        ax.fill_between(joined, low, high, color=MAIN, alpha=0.16 + 0.16 * rank, linewidth=0, label=percent(level))
        names[percent(level)] = (float(high[-1]), MUTED)
    middle = np.concatenate([seen[known : known + 1], bands[len(levels)]])
    ax.plot(when, seen[first:], color=INK, linewidth=1.1, label="seen")
    ax.plot(joined, middle, color=MAIN, linewidth=1.8, label="forecast")
    names["median"] = (float(middle[-1]), MAIN)
    ax.axvline(joined[0], color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
    ax.margins(x=0.02)
    side_labels(ax, later[-1], names)
    label = label or (data.channels[channel] if data.form != "array" else "y")
    fan = " and ".join(percent(level) for level in reversed(levels))
    finding = titled(title, f"{label}: the next {steps} steps, with {fan} intervals")
    note = f"black: seen · blue: the median of each step, by {model.network}"
    return finish(ax, title=finding, note=note, x="step" if data.calendar.kind == "number" else "", y=label)
