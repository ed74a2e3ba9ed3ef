"""Where forecasts begin: each channel of each series at each origin, in units of the model, and the way back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataError
from .scale import Scale, unbend
from .series import Columns, Series, calendar_features, known_ahead
from .windows import Past, filled

__all__ = ["Places", "frame_of", "places_of", "units_of"]


class Places(NamedTuple):
    """n = origins × series × channels places."""

    past: Past
    location: np.ndarray
    """(n, 1)"""
    scale: np.ndarray
    """(n, 1)"""
    transform: str
    real: bool
    total: int
    """Steps that the engine looks ahead: those asked for, after gaps at the end."""
    which: np.ndarray
    """(n, steps) which of those are asked for."""
    shape: tuple[int, ...]
    """(origins, series, channels, steps)"""

    def encode(self, drawn: np.ndarray) -> np.ndarray:
        """Values (…, n) that the likelihood draws as numbers of the past."""
        if self.real:
            return drawn
        return np.asarray(Scale(self.transform, self.location[:, 0], self.scale[:, 0]).forward(drawn))

    def back(self, drawn: np.ndarray) -> np.ndarray:
        """Values (…, n, steps) of the model on the scale of the data."""
        return np.asarray(unbend(self.transform, self.location + self.scale * drawn))


def units_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each channel of (T, channels); 1 for a channel that does not vary.

    >>> units_of(np.array([[1.0], [3.0], [np.nan]]))
    (array([2.]), array([1.]))
    """
    location, scale = np.nanmean(values, 0), np.nanstd(values, 0)
    still = scale <= 1e-12 * np.maximum(np.abs(location), 1e-300)
    return location, np.where(still, 1.0, scale)


def places_of(model: Any, data: Series, ends: list[int] | None, steps: int, future: Any, known: bool = False) -> Places:
    """The places after these numbers of rows, or after the last; `known` takes covariates from the series itself."""
    reach = max(model.lags_, default=1)
    pasts, befores, units, leads, starts = [], [], [], [], []
    whole: dict[Any, np.ndarray] = {}
    for end in [None] if ends is None else ends:
        for row in range(len(data)):
            last = len(data.values[row]) if end is None else end
            for channel in range(len(data.channels)):
                scale = model._scale(data, row, channel, last)
                key = (row, channel) if not data.listed else (row, channel, last)
                if key not in whole:
                    whole[key] = scale.forward(data.values[row][:, channel])
                past = whole[key][:last]
                seen = np.flatnonzero(~np.isnan(past))
                stop = int(seen[-1]) + 1 if len(seen) else 0
                if stop < reach:
                    raise DataError(
                        f"The series has {stop} values before the forecast, and the model looks back {reach} steps; "
                        "give a longer past."
                    )
                past = past[:stop]
                pasts.append(filled(past, model.season_) if model.lags_ else past)
                befores.append((row, last, stop))
                units.append((scale.location, scale.scale))
                leads.append(last - stop)
                starts.append(row)
    lead = np.array(leads)
    total = steps + int(lead.max())
    ahead = _known(model, data, befores, steps, total, future, known)
    before = tuple(data.known[row][:stop] for row, _, stop in befores) if ahead.shape[-1] else ()
    location, scales = (np.array(part, dtype=float)[:, None] for part in zip(*units, strict=True))
    which = lead[:, None] + np.arange(steps)
    shape = (1 if ends is None else len(ends), len(data), len(data.channels), steps)
    past_places = Past(tuple(pasts), ahead, before)
    return Places(past_places, location, scales, model.transform_, model.real_, total, which, shape)


def _known(
    model: Any, data: Series, befores: list[tuple[int, int, int]], steps: int, total: int, future: Any, known: bool
) -> np.ndarray:
    """Covariates (n, total, k) of the steps after each place."""
    width = data.known[0].shape[1]
    if not width:
        return np.empty((len(befores), total, 0))
    columns: Columns = model._columns()
    later = [own[:0] for own in data.known]
    if columns.calendar:
        days = [
            calendar_features(data.calendar, s, len(k), total, model.cycles_)
            for s, k in zip(data.starts, data.known, strict=True)
        ]
        later = days
    elif not known or future is not None:
        later = list(known_ahead(future, steps, width, len(data), columns))
    out = np.empty((len(befores), total, width))
    every = [np.concatenate(pair) for pair in zip(data.known, later, strict=True)]
    for i, (row, last, stop) in enumerate(befores):
        own = every[row][stop : last + steps]
        if len(own) < last - stop + steps:
            raise DataError(f"Covariates are known for {len(every[row])} rows, and the forecast needs {last + steps}.")
        out[i, : len(own)] = own
        out[i, len(own) :] = own[-1:]  # steps that only places with longer gaps look at
    return out


def frame_of(data: Series, columns: Columns, mean: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Any:
    """Answers (series, steps, channels) as a table with the names and the dates of the series."""
    import polars as pl

    steps = mean.shape[1]
    dates = [data.calendar.times(start, len(own), steps) for start, own in zip(data.starts, data.values, strict=True)]
    out: dict[str, Any] = {}
    if columns.series is not None or data.listed:
        out[columns.series or "series"] = np.repeat(np.array(data.names, dtype=object), steps).tolist()
    out[columns.date or ("step" if data.calendar.kind == "number" else "date")] = np.concatenate(dates)
    for channel, name in enumerate(data.channels):
        label = name if data.form != "array" else (f"channel_{name}" if len(data.channels) > 1 else "value")
        for suffix, part in (("", mean), ("_lower", lower), ("_upper", upper)):
            out[f"{label}{suffix}"] = part[:, :, channel].ravel()
    frame = pl.DataFrame(out)
    days = [
        n for n in frame.columns if frame[n].dtype == pl.Datetime and (frame[n].dt.truncate("1d") == frame[n]).all()
    ]
    frame = frame.with_columns(pl.col(days).cast(pl.Date))
    if data.form == "pandas":
        import pandas as pd

        return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
    return frame
