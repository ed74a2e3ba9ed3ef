from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely.core.errors import DataError, LikelyWarning, ModelFileError
from likely.data.frame import as_frame
from likely.models.forecasting.calendar import HOUR, Calendar, calendar_of, placed, times_of


def dates(text, count, unit):
    return (np.datetime64(text, unit) + np.arange(count)).astype("datetime64[us]")


@pytest.mark.parametrize(
    ("times", "kind", "season"),
    [
        (dates("1949-01", 30, "M"), "month", 12),
        (dates("1949-01", 90, "M")[::3], "month", 4),
        (dates("1700", 30, "Y"), "month", 1),
        (dates("2020-01-01", 30, "D"), "time", 7),
        (dates("2020-01-01", 30, "W"), "time", 52),
        (dates("2020-01-01T00", 30, "h"), "time", 24),
        (np.arange(1700.0, 1730.0), "number", 0),
    ],
)
def test_the_calendar_knows_step_and_season_and_goes_on(times, kind, season):
    calendar = calendar_of([times[:-5]])
    assert (calendar.kind, calendar.season) == (kind, season)
    np.testing.assert_array_equal(calendar.times(times[0], len(times) - 5, 5), times[-5:])
    assert Calendar.from_json(calendar.to_json()) == calendar


def test_ends_of_months_stay_in_their_month():
    later = Calendar("month", 1).times(np.datetime64("2020-01-31", "us"), 0, 4).astype("datetime64[D]")
    assert later.astype(str).tolist() == ["2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30"]


def test_irregular_dates_are_refused_and_disorder_is_sorted():
    days = dates("2020-01-01", 6, "D")
    with pytest.raises(DataError, match="the date 2020-01-02 more than once"):
        placed(Calendar("time", 24 * HOUR), days[[0, 1, 1, 2]], "The series")
    with pytest.raises(DataError, match="irregular steps"):
        placed(Calendar("number", 1.0), np.array([0.0, 1.0, 2.5]), "The series")
    with pytest.warns(LikelyWarning, match="not in order"):
        assert placed(Calendar("time", 24 * HOUR), days[[2, 0, 1]], "The series").tolist() == [2, 0, 1]


def test_text_that_is_no_date_is_named():
    with pytest.raises(DataError, match="'soon' in row 1, which is not a date"):
        times_of(as_frame(pl.DataFrame({"day": ["2020-01-01", "soon"]}))["day"])
    with pytest.raises(DataError, match="no date in row 1"):
        times_of(as_frame(pl.DataFrame({"day": ["2020-01-01", None]}))["day"])


def test_a_file_with_another_calendar_is_refused():
    with pytest.raises(ModelFileError, match="calendar that is none"):
        Calendar.from_json(["moon", 1])
