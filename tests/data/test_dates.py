"""Dates as days since 1970 and as phases of the year, the week and the day, against Python's own calendar."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from likely.data.dates import CYCLES, as_days, cycles_in, day_text
from likely.data.frame import as_frame

DATES = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2024, 12, 31), dt.date(1583, 1, 1)]


def series(values, **options):
    return as_frame(pl.DataFrame({"day": pl.Series("day", values, **options)}))["day"]


def test_days_and_text_are_a_round_trip():
    days, aware = as_days(series(DATES))
    assert not aware
    assert days.tolist() == [date.toordinal() - dt.date(1970, 1, 1).toordinal() for date in DATES]
    assert [day_text(day + 0.9) for day in days] == [date.isoformat() for date in DATES]


def test_times_are_fractions_and_zones_are_read_in_utc():
    noon = dt.datetime(1970, 1, 2, 12)
    assert as_days(series([noon]))[0].tolist() == [1.5]
    zoned = noon.replace(tzinfo=dt.timezone(dt.timedelta(hours=6)))
    days, aware = as_days(series([zoned, None], dtype=pl.Datetime("us", "UTC")))
    assert aware
    assert days[0] == pytest.approx(1.25)
    assert np.isnan(days[1])
    assert np.isnan(as_days(series([None, None], dtype=pl.Date))[0]).all()


def test_phases_are_those_of_the_calendar():
    days, _ = as_days(series(DATES))
    week = CYCLES["week"].phase(days)
    assert (week * 7).round(9).tolist() == [date.weekday() for date in DATES]
    for date, phase in zip(DATES, CYCLES["year"].phase(days), strict=True):
        length = dt.date(date.year + 1, 1, 1).toordinal() - dt.date(date.year, 1, 1).toordinal()
        assert phase == pytest.approx((date.timetuple().tm_yday - 1) / length, abs=1e-12)
    assert CYCLES["day"].phase(np.array([-0.25, 3.5])).tolist() == [0.75, 0.5]


def test_cycles_are_those_that_the_dates_cover():
    assert cycles_in(np.arange(800.0)) == ("year", "week")
    assert cycles_in(np.arange(0, 3, 1 / 24)) == ("day",)
    assert cycles_in(np.arange(0.0, 100.0, 7.0)) == ()  # one weekday only
    assert cycles_in(np.array([np.nan, 5.0])) == ()
    assert cycles_in(np.array([])) == ()
