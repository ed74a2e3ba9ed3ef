"""Columns of a table as numbers and back."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.errors import DataError, ModelFileError
from likely.data.coded import Coded, coded_from_json, table_of
from likely.data.frame import as_frame, column_of

NOON = dt.datetime(2026, 3, 2, 12, 30, 15, 250_000)
TABLE = pl.DataFrame(
    {
        "n": [1, 2, 40],
        "x": [0.5, None, 2.5],
        "b": [True, False, True],
        "t": ["red", None, "blue"],
        "day": [dt.date(2026, 3, 9), None, dt.date(2026, 3, 2)],
        "time": [NOON, NOON + dt.timedelta(days=400, microseconds=7), None],
        "zone": [NOON.replace(tzinfo=dt.UTC), None, NOON.replace(year=1969, tzinfo=dt.UTC)],
    }
)


@pytest.mark.parametrize("name", TABLE.columns)
def test_decoding_what_was_encoded_gives_the_column_back(name):
    series = column_of(as_frame(TABLE), name)
    coded = Coded.of(series)
    values = coded.encode(series)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(values), TABLE[name].is_null().to_numpy())
    decoded = coded.decode(values)
    assert decoded.dtype == TABLE[name].dtype
    assert [None if v != v else v for v in decoded.to_list()] == TABLE[name].to_list()


def test_dates_count_from_the_first_day_and_means_between_them_are_dates():
    coded = Coded.of(column_of(as_frame(TABLE), "day"))
    np.testing.assert_array_equal(coded.encode(column_of(as_frame(TABLE), "day")), [7.0, np.nan, 0.0])
    assert coded.decode(np.array([3.4, 1e9]), means=True).to_list() == [dt.date(2026, 3, 5), dt.date(9999, 12, 31)]
    with pytest.raises(DataError, match="'day' holds number values; training had dates there"):
        coded.encode(column_of(as_frame({"day": [1.0]}), "day"))
    with pytest.raises(DataError, match="'wait' holds durations"):
        Coded.of(column_of(as_frame({"wait": [dt.timedelta(days=1)]}), "wait"))


def test_dates_of_pandas_come_back_as_dates_of_pandas():
    frame = pd.DataFrame({"time": pd.to_datetime(["2026-03-02 06:00", None, "2026-03-04 00:00"])})
    series = column_of(as_frame(frame), "time")
    coded = Coded.of(series)
    again = table_of([coded], coded.encode(series)[:, None], "pandas")["time"]
    assert again.dtype.kind == "M"
    assert again.isna().tolist() == [False, True, False]
    assert again[0] == frame["time"][0]
    assert again[2] == frame["time"][2]


def test_text_that_training_did_not_show_is_named():
    coded = Coded.of(column_of(as_frame(TABLE), "t"))
    with pytest.raises(DataError, match=r"'t' has 'green' at row 0, which training did not show; known: 'blue', 'red'"):
        coded.encode(column_of(as_frame({"t": ["green"]}), "t"))


def test_a_file_describes_its_columns():
    columns = [Coded.of(column_of(as_frame(TABLE), name)) for name in TABLE.columns]
    assert coded_from_json([column.to_json() for column in columns]) == tuple(columns)
    with pytest.raises(ModelFileError, match="unknown kind 'date'"):
        coded_from_json([{"name": "a", "kind": "date", "levels": []}])
    with pytest.raises(ModelFileError, match="dates that count from"):
        coded_from_json([columns[4].to_json() | {"first": "Monday"}])
    with pytest.raises(ModelFileError, match="without names of their own"):
        coded_from_json([columns[0].to_json()] * 2)


def test_a_gap_in_text_of_pandas_is_missing_too():
    series = column_of(as_frame(pd.DataFrame({"t": ["red", None, "blue"]})), "t")
    np.testing.assert_array_equal(Coded.of(series).encode(series), [1.0, np.nan, 0.0])
