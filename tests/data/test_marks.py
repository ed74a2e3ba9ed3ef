"""What parts decimals and thousands, told by the columns of a file together."""

from __future__ import annotations

import polars as pl
import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data.marks import MARKS, Decimals, decimals_of, marks_of
from likely.data.read import read_marked, read_table
from likely.data.reading import Reading

pytestmark = pytest.mark.filterwarnings("ignore::likely.core.errors.ReadingNote")
FILES = {
    "the comma of one column makes points of others part thousands": (
        "a;b;c\n0,5;8.322;1.234\n1,25;9.150;7\n",
        {"a": [0.5, 1.25], "b": [8322, 9150], "c": [1234, 7]},
        Reading(decimal=","),
    ),
    "the comma of one column makes commas of others part decimals": (
        'a,b\n"0,5","1,234"\n"7,25","5,678"\n',
        {"a": [0.5, 7.25], "b": [1.234, 5.678]},
        Reading(decimal=","),
    ),
    "the points of one column make commas of others part thousands": (
        "a;b\n0.5;1,234\n7.25;5,678\n",
        {"a": [0.5, 7.25], "b": [1234, 5678]},
        Reading(decimal="."),
    ),
    "columns that disagree keep their own": (
        'a,b,c\n"0,5",0.5,8.322\n"7,25",1.25,9.150\n',
        {"a": [0.5, 7.25], "b": [0.5, 1.25], "c": [8.322, 9.15]},
        Reading(decimals={"a": ",", "b": "."}),
    ),
    "a comma between semicolons parts decimals where nothing tells": (
        "a;b\n1,234;x\n5,678;y\n",
        {"a": [1.234, 5.678], "b": ["x", "y"]},
        Reading(),
    ),
    "a comma elsewhere parts thousands where nothing tells": (
        'a,b\n"1,234",x\n"12,34,567",y\n',
        {"a": [1234, 1234567], "b": ["x", "y"]},
        Reading(),
    ),
}


@pytest.mark.parametrize(("text", "columns", "kept"), FILES.values(), ids=FILES)
def test_columns_tell_each_other(tmp_path, text, columns, kept):
    (tmp_path / "t.csv").write_text(text)
    frame, reading = read_marked(tmp_path / "t.csv", Reading())
    assert frame.to_dict(as_series=False) == columns
    assert reading == kept


@pytest.mark.parametrize(("text", "columns", "kept"), FILES.values(), ids=FILES)
def test_single_rows_are_read_as_the_whole_file_was(tmp_path, text, columns, kept):
    """So a model gets from a row of a new file what it got from that row in training."""
    (tmp_path / "t.csv").write_text(text)
    _, reading = read_marked(tmp_path / "t.csv", Reading())
    names, *rows = text.splitlines()
    for number, row in enumerate(rows):
        (tmp_path / "one.csv").write_text(f"{names}\n{row}\n")
        one, _ = read_marked(tmp_path / "one.csv", reading)
        assert one.row(0) == tuple(values[number] for values in columns.values())


def test_points_that_part_thousands_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n0,5;8.322\n")
    with pytest.warns(ReadingNote) as notes:
        read_table(tmp_path / "t.csv")
    assert [str(one.message) for one in notes] == ["read 0,5 as 0.5 in `a`.", "read 8.322 as 8322 in `b`."]


def test_points_other_than_the_marks_say_stay(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n0.5;8.322\n")
    with pytest.warns(ReadingNote, match="`a` has decimal points, other than the marks say; read as they stand"):
        frame, reading = read_marked(tmp_path / "t.csv", Reading(decimal=","))
    assert frame.row(0) == (0.5, 8322)
    assert reading == Reading(decimal=",", decimals={"a": "."})
    frame, reading = read_marked(tmp_path / "t.csv", Reading(decimal=",", thousands=" "))
    assert frame.row(0) == (0.5, 8.322)


def test_columns_without_marks_tell_nothing():
    plain = [pl.Series("a", ["$5", "7"]), pl.Series("b", ["x", "y"]), pl.Series("c", [None], dtype=pl.String)]
    assert decimals_of(plain, [pl.Series("d", ["1e5"])], MARKS, {}) == Decimals(None, {})
    with pytest.raises(DataError, match="thousands are parted"):
        marks_of(".", ".")
