"""Dates as numbers: days since 1970, and the phase in [0, 1) of the cycles that calendars have.

phase = (time since the cycle began) / (length of the cycle),   encoded as sin 2π·phase and cos 2π·phase
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

__all__ = ["CYCLES", "DAY", "Cycle", "as_days", "cycles_in", "day_text"]

DAY = 86_400_000_000
"""Microseconds in a day."""


@dataclass(frozen=True)
class Cycle:
    """Something that repeats: its length in days, and where in it a day (since 1970, a number) lies."""

    days: float
    phase: Callable[[np.ndarray], np.ndarray]


def as_days(series: nw.Series[Any]) -> tuple[np.ndarray, bool]:
    """Days since 1970 as float64, missing as NaN, and whether the dates know their time zone (then in UTC).

    >>> import datetime
    >>> from likely.data.frame import as_frame
    >>> as_days(as_frame({"day": [datetime.date(1970, 1, 3), None]})["day"])
    (array([ 2., nan]), False)
    """
    if series.is_null().all():
        return np.full(len(series), np.nan), False
    aware = getattr(series.dtype, "time_zone", None) is not None
    if aware:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    times = np.asarray(series.cast(nw.Datetime("us")).to_numpy()).astype("datetime64[us]")
    days = times.astype(np.int64) / DAY
    return np.where(np.isnat(times), np.nan, days), aware


def cycles_in(days: np.ndarray) -> tuple[str, ...]:
    """The cycles that these dates cover: at least one complete one, at three different phases.

    >>> import numpy as np
    >>> cycles_in(np.arange(30.0))
    ('week',)
    """
    present = days[~np.isnan(days)]
    span = np.ptp(present) if present.size else 0.0
    return tuple(
        name
        for name, cycle in CYCLES.items()
        if span >= cycle.days and np.unique(cycle.phase(present).round(6)).size >= 3
    )


def day_text(days: float) -> str:
    """The day as a calendar writes it.

    >>> day_text(2.5)
    '1970-01-03'
    """
    return str(np.datetime64(int(days // 1), "D"))


def _year(days: np.ndarray) -> np.ndarray:
    whole = np.where(np.isnan(days), 0.0, np.floor(days)).astype(np.int64).astype("datetime64[D]")
    year = whole.astype("datetime64[Y]")
    begin = year.astype("datetime64[D]").astype(np.int64)
    end = (year + 1).astype("datetime64[D]").astype(np.int64)
    return (days - begin) / (end - begin)


CYCLES = {
    "year": Cycle(365.0, _year),
    "week": Cycle(7.0, lambda days: (days + 3) % 7 / 7),  # 1970-01-01 was a Thursday; weeks begin on Monday
    "day": Cycle(1.0, lambda days: days % 1),
}
