from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.errors import DataError, LikelyWarning
from likely.models.forecasting.series import Columns, known_ahead, read_series

DAYS = [dt.date(2020, 1, day) for day in range(1, 11)]


@pytest.mark.parametrize(
    ("X", "shape", "listed", "flat"),
    [
        (np.arange(5.0), (5, 1), False, True),
        ([1, 2, 3], (3, 1), False, True),
        (np.ones((5, 2)), (5, 2), False, False),
        ([np.ones(4), np.ones(6)], (4, 1), True, True),
        (np.ones((3, 4, 2)), (4, 2), True, False),
        (pl.DataFrame({"day": DAYS, "y": range(10)}), (10, 1), False, True),
        (pd.Series(range(10), index=pd.DatetimeIndex(DAYS)), (10, 1), False, True),
    ],
)
def test_every_form_is_read(X, shape, listed, flat):
    data = read_series(X, Columns())
    assert data.values[0].shape == shape
    assert (data.listed, data.flat) == (listed, flat)


def test_a_long_table_holds_several_series_and_gaps_in_its_dates_are_gaps():
    frame = pl.DataFrame({"day": [*DAYS, *DAYS], "shop": ["a"] * 10 + ["b"] * 10, "y": range(20)})
    columns = Columns("day", "y", "shop")
    data = read_series(frame, columns)
    assert data.names == ("a", "b")
    np.testing.assert_array_equal(data.values[1].ravel(), np.arange(10, 20))
    with pytest.warns(LikelyWarning, match="no row for 1 of 10 steps"):
        holes = read_series(frame.filter(~((pl.col("shop") == "b") & (pl.col("y") == 13))), columns)
    assert np.isnan(holes.values[1][3, 0])


def test_rows_before_the_first_value_are_left_out():
    data = read_series(np.array([np.nan, np.nan, 3.0, np.nan]), Columns())
    assert data.values[0].shape == (2, 1)
    assert data.starts == (2.0,)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "empty list"),
        (["a", "b"], "not numbers"),
        (np.ones(4) + 1j, "series has complex numbers; a series is one of real ones"),
        ([[1.0, 2.0], [1.0, 2.0 + 0j]], r"series\[1\] has complex numbers"),
        (pd.Series(np.ones(10) + 1j, index=pd.date_range("2020", periods=10)), "series has complex numbers"),
        (np.ones((2, 2, 2, 2)), "shape"),
        ([1.0, np.inf], "infinite value in row 1"),
        (np.full(4, np.nan), "no value at all"),
        ([np.ones(3), np.ones((3, 2))], "different channels"),
        (pl.DataFrame({"name": ["a", "b"]}), "no column of numbers"),
        (pl.DataFrame({"a": DAYS, "b": DAYS, "y": range(10)}), "several columns of dates"),
    ],
)
def test_what_is_no_series_is_refused_by_name(X, message):
    with pytest.raises(DataError, match=message):
        read_series(X, Columns())


def test_covariates_are_columns_and_must_reach_as_far_as_the_forecast():
    data = read_series(np.column_stack([np.arange(5.0), np.ones(5)]), Columns(covariates=(1,)))
    assert data.flat
    assert data.known[0].shape == (5, 1)
    columns = Columns(covariates=(1,))
    assert known_ahead(np.ones((3, 1)), 3, 1, 1, columns).shape == (1, 3, 1)
    with pytest.raises(DataError, match="future has 2 rows, and 3 steps are asked for"):
        known_ahead(np.ones((2, 1)), 3, 1, 1, columns)
    with pytest.raises(DataError, match="give future="):
        known_ahead(None, 3, 1, 1, columns)
    with pytest.raises(DataError, match="needs dates"):
        read_series(np.ones(4), Columns(covariates="calendar"))


def test_the_calendar_gives_sine_and_cosine_of_its_cycles():
    frame = pl.DataFrame({"day": [dt.date(2020, 1, 1) + dt.timedelta(k) for k in range(30)], "y": range(30)})
    data = read_series(frame, Columns(date="day", covariates="calendar"))
    assert data.cycles == ("week",)
    np.testing.assert_allclose((data.known[0] ** 2).sum(1), 1.0)
    np.testing.assert_allclose(data.known[0][7:], data.known[0][:-7], atol=1e-12)
