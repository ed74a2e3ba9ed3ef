"""Series at the door: one or several, of one channel or more, as arrays, lists, or tables with dates.

Time is the first axis. NaN is a gap; rows before the first value are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from torch import Tensor

from ...core.errors import DataError, LikelyWarning
from ...data.columns import as_text
from ...data.dates import CYCLES, cycles_in
from ...data.frame import as_frame, column_of, some
from .calendar import Calendar, calendar_of, placed, times_of

__all__ = ["Columns", "Series", "calendar_features", "known_ahead", "read_series"]


ROWS = Calendar()
"""Rows without dates are one step apart."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; for arrays, `covariates` are numbers of columns."""

    date: str | None = None
    target: Any = None
    series: str | None = None
    covariates: Any = None

    @property
    def named(self) -> tuple[Any, ...]:
        """The covariates that are columns."""
        if self.covariates is None or (isinstance(self.covariates, str) and self.covariates == "calendar"):
            return ()
        one = isinstance(self.covariates, str | int)
        return (self.covariates,) if one else tuple(self.covariates)

    @property
    def calendar(self) -> bool:
        """Whether the covariates are cycles of the calendar."""
        return isinstance(self.covariates, str) and self.covariates == "calendar"


@dataclass(frozen=True)
class Series:
    """Series that have the same channels and the same step."""

    values: tuple[np.ndarray, ...]
    """(T, channels) of each, float64, NaN where a value is missing."""
    known: tuple[np.ndarray, ...]
    """(T, covariates) of each: what is known ahead of time."""
    starts: tuple[Any, ...]
    """When each begins, by the calendar."""
    names: tuple[str, ...]
    channels: tuple[str, ...]
    calendar: Calendar = ROWS
    listed: bool = False
    """Whether there may be several: answers then have an axis for the series."""
    flat: bool = True
    """Whether a series is (T,): answers then have no axis for the channels."""
    form: str = "array"
    """The kind of table: "array", "pandas" or "polars"."""
    cycles: tuple[str, ...] = ()
    """Those of the calendar that are covariates."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each."""
        return np.array([len(values) for values in self.values])

    def cut(self, rows: int) -> Series:
        """The first rows of each."""
        own, ahead = (tuple(part[:rows] for part in parts) for parts in (self.values, self.known))
        return replace(self, values=own, known=ahead)

    def shaped(self, answers: np.ndarray) -> np.ndarray:
        """Answers (…, series, steps, channels) without the axes that this form of series does not have."""
        answers = answers[..., 0] if self.flat else answers
        axis = answers.ndim - (1 if self.flat else 2) - 1
        return answers if self.listed else answers.take(0, axis)


def read_series(X: Any, columns: Columns) -> Series:
    """What a user passed, in float64.

    >>> read_series([1.0, 2.0, np.nan, 4.0], Columns()).values[0].ravel()
    array([ 1.,  2., nan,  4.])
    """
    if isinstance(X, Mapping | nw.DataFrame) or hasattr(X, "columns"):
        return _from_frame(X, columns)
    index = getattr(getattr(X, "index", None), "values", None)  # a pandas Series
    if isinstance(index, np.ndarray) and index.dtype.kind == "M":
        return _dated(real_of(X, "series").reshape(-1, 1), index.astype("datetime64[us]"), columns)
    several = _several(X)
    arrays = [_array(part, f"series[{i}]") for i, part in enumerate(several)] if several is not None else [_array(X)]
    widths = {array.shape[1:] for array in arrays}
    if len(widths) > 1:
        raise DataError(
            f"The series have different channels: {some(map(str, sorted(widths)))}; they must have the same."
        )
    flat = arrays[0].ndim == 1
    arrays = [array.reshape(len(array), -1) for array in arrays]
    own, known = _split(arrays[0].shape[1], columns)
    if columns.calendar:
        raise DataError('covariates="calendar" needs dates: give a table with a date column, or a pandas Series.')
    return _trimmed(
        [array[:, own] for array in arrays],
        [array[:, known] for array in arrays],
        [0.0] * len(arrays),
        tuple(map(str, range(len(arrays)))),
        tuple(map(str, own)),
        listed=several is not None,
        flat=flat or (len(own) == 1 and bool(known)),
    )


def calendar_features(calendar: Calendar, start: Any, first: int, count: int, cycles: Sequence[str]) -> np.ndarray:
    """sin and cos of the phase in each cycle of the calendar, (count, 2 · cycles)."""
    times = calendar.times(start, first, count)
    days = times.astype("datetime64[us]").astype(np.int64) / 86_400_000_000
    phases = [2 * np.pi * CYCLES[name].phase(days) for name in cycles]
    return np.column_stack(
        [part for phase in phases for part in (np.sin(phase), np.cos(phase))] or [np.empty((count, 0))]
    )


def known_ahead(future: Any, steps: int, width: int, count: int, columns: Columns) -> np.ndarray:
    """The covariates of the steps to come, (series, steps, width)."""
    if future is None:
        raise DataError(
            f"The model has {width} covariates ({some(map(str, columns.named))}), whose values in the {steps} steps to "
            "come are not known: give future=…, with one row per step."
        )
    if hasattr(future, "columns") or isinstance(future, Mapping):
        frame = as_frame(future, "future")
        parts = [frame] if columns.series is None else _groups(frame, columns.series)[1]
        arrays = [_numbers(part, columns.named, "future") for part in parts]
    else:
        several = _several(future)
        arrays = [real_of(part, "future") for part in ([future] if several is None else several)]
        arrays = [array.reshape(len(array), -1) for array in arrays]
    arrays = arrays * count if len(arrays) == 1 else arrays
    for array in arrays:
        if array.shape[1] != width or len(arrays) != count:
            raise DataError(f"future has shape {array.shape}; it needs {width} covariates for each of {count} series.")
        if len(array) < steps:
            raise DataError(
                f"future has {len(array)} rows, and {steps} steps are asked for: covariates are not known beyond them; "
                "ask for fewer steps or give more rows."
            )
        if not np.isfinite(array[:steps]).all():
            raise DataError("future has values that are missing or infinite; covariates must be known at every step.")
    return np.stack([array[:steps] for array in arrays])


# --- tables -----------------------------------------------------------------------------------------------------------
def _from_frame(X: Any, columns: Columns) -> Series:
    frame, form = as_frame(X), "pandas" if type(X).__module__.startswith("pandas") else "polars"
    index = getattr(getattr(X, "index", None), "values", None)
    date = columns.date or _date_column(frame)
    names, parts = (("0",), [frame]) if columns.series is None else _groups(frame, columns.series)
    targets = _targets(frame, columns, date)
    values = [_numbers(part, targets, "The table") for part in parts]
    known = [_numbers(part, columns.named, "The table") for part in parts]
    if date is not None:
        times = [times_of(column_of(part, date, "The table")) for part in parts]
    elif isinstance(index, np.ndarray) and index.dtype.kind == "M" and len(parts) == 1:
        times = [index.astype("datetime64[us]")]
    else:
        if columns.calendar:
            raise DataError('covariates="calendar" needs dates; name their column: date=….')
        times = [np.arange(len(part), dtype=float) for part in parts]
    calendar = calendar_of(times)
    labels = [f"Series {name!r}" if columns.series else "The series" for name in names]
    filled = [_even(calendar, *own) for own in zip(times, values, known, labels, strict=True)]
    flat = columns.target is None or isinstance(columns.target, str)
    return _trimmed(
        [own[0] for own in filled],
        [own[1] for own in filled],
        [own.min() for own in times],
        tuple(names),
        tuple(targets),
        calendar,
        columns,
        listed=columns.series is not None,
        flat=flat and len(targets) == 1,
        form=form,
    )


def _dated(values: np.ndarray, times: np.ndarray, columns: Columns) -> Series:
    calendar = calendar_of([times])
    even, known = _even(calendar, times, values, np.empty((len(values), 0)), "The series")
    return _trimmed([even], [known], [times.min()], ("0",), ("0",), calendar, columns)


def _even(
    calendar: Calendar, times: np.ndarray, values: np.ndarray, known: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Rows at even steps: sorted, with NaN at the steps that have none."""
    rows = placed(calendar, times, name)
    count = int(rows.max()) + 1
    if count > len(rows):
        warnings.warn(f"{name} has no row for {count - len(rows)} of {count} steps; they are gaps.", LikelyWarning, 5)
    even, ahead = np.full((count, values.shape[1]), np.nan), np.full((count, known.shape[1]), np.nan)
    even[rows], ahead[rows] = values, known
    return even, ahead


def _date_column(frame: nw.DataFrame[Any]) -> str | None:
    dates = [name for name, dtype in frame.schema.items() if dtype.is_temporal()]
    if len(dates) > 1:
        raise DataError(f"The table has several columns of dates ({some(dates)}); say which one: date=….")
    return dates[0] if dates else None


def _targets(frame: nw.DataFrame[Any], columns: Columns, date: str | None) -> list[str]:
    if columns.target is not None:
        return [columns.target] if isinstance(columns.target, str) else list(columns.target)
    others = {date, columns.series, *columns.named}
    names = [name for name, dtype in frame.schema.items() if name not in others and dtype.is_numeric()]
    if not names:
        raise DataError(f"The table has no column of numbers to forecast; it has {some(frame.columns)}.")
    return names


def _groups(frame: nw.DataFrame[Any], column: str) -> tuple[tuple[str, ...], list[nw.DataFrame[Any]]]:
    labels = as_text(column_of(frame, column, "The table")).to_list()
    if None in labels:
        raise DataError(f"Column {column!r} names the series of each row; row {labels.index(None)} has none.")
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return tuple(rows), [frame[index, :] for index in rows.values()]


def _numbers(frame: nw.DataFrame[Any], names: Sequence[Any], source: str) -> np.ndarray:
    arrays = []
    for name in names:
        column = column_of(frame, str(name), source)
        if not column.dtype.is_numeric() and column.dtype != nw.Boolean:
            raise DataError(f"Column {name!r} has {column.dtype}, and a series needs numbers.")
        arrays.append(column.cast(nw.Float64).to_numpy().astype(float))
    return np.column_stack(arrays) if arrays else np.empty((len(frame), 0))


# --- arrays -----------------------------------------------------------------------------------------------------------
def _several(X: Any) -> list[Any] | None:
    """The series, if X is a list of them or has three axes."""
    if getattr(X, "ndim", None) == 3:
        return list(X)
    if not isinstance(X, list | tuple):
        return None
    if not X:
        raise DataError("series is an empty list: there is nothing to forecast.")
    return list(X) if all(hasattr(part, "__len__") and not isinstance(part, str) for part in X) else None


def _array(X: Any, name: str = "series") -> np.ndarray:
    if isinstance(X, Tensor):
        X = X.detach().cpu().numpy()
    try:
        array = real_of(X, name)
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name} has values that are not numbers ({error}); a series is (T,) or (T, channels)."
        ) from None
    if array.ndim not in (1, 2) or not array.size:
        raise DataError(f"{name} has shape {array.shape}; a series is (T,) or (T, channels), with at least one row.")
    return array


def real_of(X: Any, name: str) -> np.ndarray:
    """A new array of float64; complex numbers would lose a part."""
    array = np.asarray(X)
    if np.iscomplexobj(array) or (array.dtype == object and any(isinstance(v, complex) for v in array.flat)):
        raise DataError(f"{name} has complex numbers; a series is one of real ones: forecast its parts as channels.")
    return np.array(array, dtype=float)


def _split(width: int, columns: Columns) -> tuple[list[int], list[int]]:
    """The numbers of the columns that are forecast, and of the covariates."""
    known = list(columns.named)
    if any(isinstance(name, str) or not -width <= name < width for name in known):
        raise DataError(f"covariates={columns.covariates!r}: for an array, give numbers of its {width} columns.")
    known = [int(number) % width for number in known]
    own = [number for number in range(width) if number not in known]
    if not own:
        raise DataError("Every column of series is a covariate; there is nothing left to forecast.")
    return own, known


def _trimmed(
    values: list[np.ndarray],
    known: list[np.ndarray],
    starts: list[Any],
    names: tuple[str, ...],
    channels: tuple[str, ...],
    calendar: Calendar = ROWS,
    columns: Columns = Columns(),  # noqa: B008
    **form: Any,
) -> Series:
    """Checked: finite, with a value in every channel, and without the rows before the first value."""
    for i, own in enumerate(values):
        name = f"Series {names[i]!r}" if len(values) > 1 else "The series"
        if np.isinf(own).any():
            raise DataError(f"{name} has an infinite value in row {int(np.isinf(own).any(1).argmax())}.")
        empty = np.isnan(own).all(0)
        if empty.any():
            raise DataError(f"{name} has no value at all in channel {channels[int(empty.argmax())]!r}; leave it out.")
        first = int((~np.isnan(own)).any(1).argmax())
        values[i], known[i] = own[first:], known[i][first:]
        starts[i] = calendar.times(starts[i], first, 1)[0] if first else starts[i]
    cycles: tuple[str, ...] = ()
    if columns.calendar:
        if calendar.kind == "number":
            raise DataError('covariates="calendar" needs dates, and the column has numbers.')
        spans = [calendar.times(start, 0, len(own)) for start, own in zip(starts, values, strict=True)]
        days = np.concatenate(spans).astype("datetime64[us]").astype(np.int64) / 86_400_000_000
        cycles = cycles_in(days)
        pairs = zip(starts, values, strict=True)
        known = [calendar_features(calendar, start, 0, len(own), cycles) for start, own in pairs]
    for i, own in enumerate(known):
        if not np.isfinite(own).all():
            raise DataError(
                f"The covariates of series {names[i]!r} are missing in row {int((~np.isfinite(own)).any(1).argmax())}."
            )
    return Series(tuple(values), tuple(known), tuple(starts), names, channels, calendar, cycles=cycles, **form)
