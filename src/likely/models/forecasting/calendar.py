"""The times of a series: evenly spaced numbers, months of the calendar, or a fixed distance in time.

time of row t = start + t · step
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from ...core.errors import DataError, LikelyWarning, ModelFileError

__all__ = ["Calendar", "calendar_of", "placed", "times_of"]

HOUR = 3_600_000_000
"""Microseconds."""
SEASONS = {HOUR // 4: 96, HOUR // 2: 48, HOUR: 24, 24 * HOUR: 7, 168 * HOUR: 52}
"""Steps in the cycle that a series of this step has first: the day, the week, the year."""
MOST = 10_000_000
"""Steps that a series with gaps may span."""


@dataclass(frozen=True)
class Calendar:
    """How far one row is from the next: `kind` is "number", "month" or "time" (in microseconds).

    >>> Calendar("month", 1).season, Calendar("time", HOUR).season, Calendar("number", 1).season
    (12, 24, 0)
    """

    kind: str = "number"
    step: float = 1

    @property
    def season(self) -> int:
        """Rows in a cycle of the calendar; 0 if the calendar does not say, 1 if there is none."""
        if self.kind == "month":
            return max(1, round(12 / self.step))
        return 0 if self.kind == "number" else SEASONS.get(int(self.step), 1)

    def times(self, start: Any, first: int, count: int) -> np.ndarray:
        """The times of `count` rows from row `first` of a series that begins at `start`.

        >>> Calendar("month", 3).times(np.datetime64("2020-11-30", "us"), 1, 2).astype("datetime64[D]")
        array(['2021-02-28', '2021-05-30'], dtype='datetime64[D]')
        """
        index = np.arange(first, first + count)
        if self.kind == "number":
            return np.asarray(float(start) + index * self.step)
        begin = np.datetime64(start, "us")
        if self.kind == "time":
            return begin + (index * int(self.step)).astype("timedelta64[us]")
        month = begin.astype("datetime64[M]")
        rest = begin - month.astype("datetime64[us]")
        months = month + index * int(self.step)
        last = (months + 1).astype("datetime64[us]") - np.timedelta64(24 * HOUR, "us")
        return np.minimum(months.astype("datetime64[us]") + rest, last + rest % np.timedelta64(24 * HOUR, "us"))

    def to_json(self) -> list[Any]:
        """Plain data, for model files."""
        return [self.kind, self.step]

    @staticmethod
    def from_json(data: Any) -> Calendar:
        """The inverse of `to_json`."""
        kind, step = data
        sound = isinstance(step, int | float) and not isinstance(step, bool) and 0 < step < 1e18
        if kind not in ("number", "month", "time") or not sound:
            raise ModelFileError(f"The file has a calendar that is none: {data!r}.")
        return Calendar(kind, step)


def times_of(column: nw.Series[Any]) -> np.ndarray:
    """The dates of a column: datetime64[us], or numbers such as years.

    >>> from likely.data.frame import as_frame
    >>> times_of(as_frame({"month": ["1949-01", "1949-02"]})["month"]).astype("datetime64[M]")
    array(['1949-01', '1949-02'], dtype='datetime64[M]')
    """
    if column.dtype.is_numeric():
        times = column.to_numpy().astype(float)
        missing = np.isnan(times)
    elif column.dtype == nw.String or column.dtype == nw.Categorical:
        times = _parsed([None if text is None else str(text) for text in column.to_list()], str(column.name))
        missing = np.isnat(times)
    else:
        if getattr(column.dtype, "time_zone", None) is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        times = np.asarray(column.cast(nw.Datetime("us")).to_numpy()).astype("datetime64[us]")
        missing = np.isnat(times)
    if missing.any():
        raise DataError(f"Column {column.name!r} has no date in row {int(missing.argmax())}; each row needs one.")
    return times


def _parsed(texts: Sequence[str | None], name: str) -> np.ndarray:
    times = np.empty(len(texts), dtype="datetime64[us]")
    for row, text in enumerate(texts):
        try:
            times[row] = np.datetime64("NaT" if text is None else text.strip(), "us")
        except ValueError:
            raise DataError(
                f"Column {name!r} has {text!r} in row {row}, which is not a date; write dates as 1949-01 or 1949-01-31."
            ) from None
    return times


def calendar_of(groups: Sequence[np.ndarray]) -> Calendar:
    """The step of the times of one series or several: the shortest that occurs.

    >>> calendar_of([np.array([1700.0, 1701.0, 1702.0])])
    Calendar(kind='number', step=1.0)
    >>> calendar_of([np.arange("2020-01", "2021-01", dtype="datetime64[M]").astype("datetime64[us]")])
    Calendar(kind='month', step=1)
    """
    sorted_groups = [np.sort(times) for times in groups]
    gaps = np.concatenate([np.diff(times) for times in sorted_groups])
    gaps = gaps[gaps > gaps.dtype.type(0)]
    if not len(gaps):
        raise DataError("The dates do not say how far one row is from the next: there must be two different ones.")
    if gaps.dtype.kind == "f":
        return Calendar("number", float(gaps.min()))
    if gaps.min() >= np.timedelta64(28, "D"):
        months = np.concatenate([np.diff(times.astype("datetime64[M]").astype(int)) for times in sorted_groups])
        months = months[months > 0]
        return Calendar("month", int(months.min()) if len(months) else 1)
    return Calendar("time", int(gaps.min().astype("timedelta64[us]").astype(np.int64)))


def placed(calendar: Calendar, times: np.ndarray, name: str) -> np.ndarray:
    """The row of each time, counted from the earliest; an error for dates that occur twice or lie between two steps.

    >>> placed(Calendar("number", 2), np.array([0.0, 2.0, 6.0]), "The series")
    array([0, 1, 3])
    """
    begin = times.min()
    if calendar.kind == "month":
        months = times.astype("datetime64[M]").astype(int)
        exact = (months - months.min()) / calendar.step
    else:
        apart = times - begin
        apart = apart.astype(np.int64) if apart.dtype.kind == "m" else apart
        exact = apart / calendar.step
    rows = np.rint(exact).astype(np.int64)
    away = np.abs(exact - rows) > 0.01
    if away.any():
        at = times[away][0]
        raise DataError(
            f"{name} has irregular steps: {_text(at)} is not a multiple of the shortest step after {_text(begin)}; "
            "bring it to even steps first (such as a mean per day)."
        )
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = times[first[counts > 1][0]]
        raise DataError(
            f"{name} has the date {_text(twice)} more than once; keep one row per date, or name the column that tells "
            "several series apart (series=…)."
        )
    if rows.max() >= MOST:
        raise DataError(f"{name} would have {rows.max() + 1:,} steps; its dates are too far apart for its step.")
    if (np.diff(rows) < 0).any():
        warnings.warn(f"{name} has dates that are not in order; its rows were sorted.", LikelyWarning, stacklevel=5)
    return rows


def _text(time: Any) -> str:
    return f"{time:g}" if isinstance(time, float) else str(np.datetime64(time, "us")).removesuffix("T00:00:00.000000")
