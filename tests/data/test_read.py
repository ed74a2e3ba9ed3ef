"""Tables from files and from memory."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data.frame import as_frame, column_of
from likely.data.read import read_table

FRAME = pl.DataFrame({"a": [1, None, 3], "b": ["x", "y, z", None], "c": [0.5, -1e9, 2.0]})


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".CSV"])
def test_what_was_written_is_read(tmp_path, ending):
    path = tmp_path / f"table{ending}"
    text = FRAME.write_csv(separator="\t" if ".tsv" in ending else ",").encode()
    if ending == ".parquet":
        FRAME.write_parquet(path)
    else:
        path.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    assert read_table(path).equals(FRAME)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n\n3,4\n\n", {"a": [1, 3], "b": [2, 4]}),  # blank lines are no rows
        ("a, b\n1, 2\n3, NA\n", {"a": [1, 3], "b": [2, None]}),  # blanks around fields
        ("a;b\n1;2\n", {"a": [1], "b": [2]}),
        ("a\tb\n1\t2\n", {"a": [1], "b": [2]}),
        ('"a, b";c\n1;2\n', {"a, b": [1], "c": [2]}),  # a comma in quotes separates nothing
        ("\ufeffa,b\r\n1,2\r\n", {"a": [1], "b": [2]}),
        ("a,b\n1,NaN\n2,3.5\n", {"a": [1, 2], "b": [None, 3.5]}),
        ("a\n1\n\n3\n", {"a": [1, None, 3]}),  # in one column, a blank line is a missing value
        ('a,"b,c"\n1,"x ""y"""\n', {"a": [1], "b,c": ['x "y"']}),
    ],
)
def test_dialects(tmp_path, text, expected):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_table(path).to_dict(as_series=False) == expected


def test_types_come_from_all_rows(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("a\n" + "1\n" * 50 + "text\n" * 5000)
    assert read_table(path)["a"].dtype == pl.String


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "No table at .*none.csv"),
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n\n", "is empty"),
        ("names.csv", b"a,b\n", r"has columns \(a, b\) but no rows"),
        ("table.xls", b"a\n1\n", r"ending '.xls' is not known; tables end in .csv"),
        ("twice.csv", b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
        ("index.csv", b",a\n0,1\n0,2\n", "column 1 has no name, and holds 0; name it in the first line"),
        ("middle.csv", b"a,,b\n1,2,3\n4,5,6\n", "column 2 has no name, and holds 2"),
        ("data.csv", b"5.1,3.5,0\n4.9,3.0,0\n", "first line holds numbers"),
        ("long.csv", b"a,b\n1,2\n3,4,5\n", "line 3: 3 fields where the first line names 2"),
        ("short.csv", b"a,b\n1,2\n3\n", "line 3: 1 field where the first line names 2 columns"),
        ("broken.csv.gz", b"not gzip", "cannot be read"),
        ("broken.parquet", b"not parquet at all", "cannot be read as Parquet"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_a_folder_is_no_table(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_frames_through_one_door(make):
    frame = as_frame(make({"a": [1, 2], "b": ["x", "y"]}))
    assert frame.columns == ["a", "b"]
    assert frame["b"].to_list() == ["x", "y"]


def test_names_that_are_not_text_become_text():
    assert as_frame(pd.DataFrame(np.zeros((2, 2)))).columns == ["0", "1"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((2, 2)), "must be a table.*found a ndarray"),
        (pl.LazyFrame({"a": [1]}), r"call .collect\(\)"),
        ({"a": [1, 2], "b": [1]}, "different lengths.*a: 2, b: 1"),
        ({"a": 3}, "column 'a' must be a list"),
        ({"a": [1, "x"]}, r"column 'a' mixes values of different types \(int, str\), such as 1 at row 0"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named 'a'"),
    ],
)
def test_what_is_no_frame(data, message):
    with pytest.raises(DataError, match=message):
        as_frame(data)


def test_an_absent_column_is_named_with_the_nearest_one():
    with pytest.raises(DataError, match=r"has no column 'prize'. Did you mean 'Price'\? It has area, Price"):
        column_of(as_frame({"area": [1], "Price": [2]}), "prize")
    with pytest.raises(DataError, match=r"has no column 'zzz'. It has a"):
        column_of(as_frame({"a": [1]}), "zzz")


def test_python_objects_in_pandas_columns():
    frame = as_frame(pd.DataFrame({"b": pd.Series([True, None], dtype=object), "m": pd.Series([1, "x"], dtype=object)}))
    assert column_of(frame, "b").to_list() == [True, None]
    with pytest.raises(DataError, match=r"Column 'm' mixes values of different types \(int, str\)"):
        column_of(frame, "m")


def told(notes):
    return [str(one.message) for one in notes if issubclass(one.category, ReadingNote)]


@pytest.mark.parametrize("text", ["a,b,y,\n1,2,3,\n4,5,6,\n", "a, b, y, \n1, 2, 3, \n4, 5, 6, \n"])
def test_an_unnamed_column_without_a_value_is_left_out(tmp_path, text, recwarn):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert read_table(path).to_dict(as_series=False) == {"a": [1, 4], "b": [2, 5], "y": [3, 6]}
    assert told(recwarn) == [f"{path}: left out 1 column without a name and without a value."]


@pytest.mark.parametrize("names", [("1", "2"), ("Mazda RX4", "Datsun 710")])
def test_row_names_as_r_and_pandas_write_them_are_left_out(tmp_path, names):
    path = tmp_path / "t.csv"
    path.write_text(f'"","a","b"\n"{names[0]}",1,x\n"{names[1]}",1,y\n')
    with pytest.warns(ReadingNote, match=rf"left out the first column, which has no name .*{names[0]}.*: row names"):
        assert read_table(path).to_dict(as_series=False) == {"a": [1, 1], "b": ["x", "y"]}


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;"])
def test_the_line_by_which_excel_names_the_separator_is_honoured(tmp_path, line):
    path = tmp_path / "t.csv"
    path.write_bytes(f"\ufeff{line}\r\na;b,c\r\n1;2\r\n3;4\r\n".encode())
    assert read_table(path).to_dict(as_series=False) == {"a": [1, 3], "b,c": [2, 4]}
