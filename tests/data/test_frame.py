"""Any table through one door: pandas, polars or a dict, with names that are text and all different."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.errors import DataError
from likely.data.frame import as_frame, check_names, column_of, is_number, some

COLUMNS = {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_every_kind_of_table_gives_the_same_columns(make):
    frame = as_frame(make(COLUMNS))
    assert frame.columns == ["a", "b"]
    assert {name: frame[name].to_list() for name in frame.columns} == COLUMNS
    assert as_frame(frame) is frame


def test_names_that_are_numbers_become_text():
    assert as_frame(pd.DataFrame(np.zeros((2, 2)))).columns == ["0", "1"]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (np.zeros((2, 2)), "frame must be a table: a pandas or polars frame, or a dict of columns; found a ndarray"),
        (pl.LazyFrame(COLUMNS), r"LazyFrame \(call \.collect\(\) on it first\)"),
        ({"a": "text"}, "column 'a' must be a list or an array of values; found 'text'"),
        ({"a": [1], "b": [1, 2]}, r"columns have different lengths \(a: 1, b: 2\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named 'a'"),
    ],
)
def test_what_is_not_a_table_is_told(table, text):
    with pytest.raises(DataError, match=text):
        as_frame(table)


def test_a_missing_column_is_told_with_the_nearest_name():
    with pytest.raises(DataError, match=r"table has no column 'Prize'. Did you mean 'price'\? It has price, size"):
        column_of(as_frame({"price": [1], "size": [2]}), "Prize", "table")


def test_objects_of_one_type_are_typed_and_mixed_ones_are_refused():
    frame = as_frame(pd.DataFrame({"a": pd.Series([True, None, False], dtype=object), "b": pd.Series([1, "x", 2.0])}))
    assert column_of(frame, "a").to_list() == [True, None, False]
    with pytest.raises(DataError, match="Column 'b' mixes values of different types"):
        column_of(frame, "b")


def test_names_of_a_first_data_row_are_refused():
    check_names(["a", "1"], "file")
    with pytest.raises(DataError, match="the first line holds numbers"):
        check_names(["1.5", "2"], "file")
    with pytest.raises(DataError, match="file: column 2 has no name"):
        check_names(["a", ""], "file")
    assert [is_number(text) for text in ("1e-3", "nan", "one", "")] == [True, True, False, False]
    assert some("abcdefgh") == "a, b, c, d, e, f, … (8 in all)"
