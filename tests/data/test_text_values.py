"""Text in frames that was meant as numbers or dates is read as in files, later rows as the training rows were."""

from __future__ import annotations

import datetime as dt

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data import Table, read_table
from likely.data.text_values import TextForm, read_written

TEXT = {
    "price": ["52.353,57", "€ 5", "1.200"],
    "rate": ["12 %", "7 %", "9,5 %"],
    "day": ["31.12.2020", "1.2.2021", None],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
@pytest.mark.filterwarnings("ignore::likely.core.errors.ReadingNote")
def test_frames_are_read_as_files_are(tmp_path, make):
    """`Table` gives the same numbers for a frame of text as for the file of the same text."""
    path = tmp_path / "t.csv"
    pl.DataFrame(TEXT).write_csv(path, separator=";")
    told = Table().fit(make(TEXT))
    known = Table().fit(read_table(path))
    assert [column.label for column in told.columns_] == ["number", "number", "date"]
    np.testing.assert_array_equal(told.transform(make(TEXT)), known.transform(read_table(path)))


@pytest.mark.filterwarnings("ignore::likely.core.errors.ReadingNote")
def test_later_rows_are_read_in_the_form_of_the_training_rows(tmp_path):
    """ "1.234" is 1234 where training had decimal commas, though alone it would be read otherwise; also from a file."""
    table = Table(standardize=False).fit({"x": ["1.234,5", "2,5"], "d": ["31.12.2020", "5.6.2021"]})
    table.save(tmp_path / "t.likely")
    import likely

    for own in (table, likely.load(tmp_path / "t.likely")):
        x, days = own.transform({"x": ["1.234", "7"], "d": ["1.2.2021", "31.12.2020"]})[:, :2].T
        np.testing.assert_array_equal(x, [1234, 7])
        np.testing.assert_array_equal(days, [32, 0])
        np.testing.assert_array_equal(own.transform({"x": [1.5], "d": [dt.date(2020, 12, 31)]})[0, :2], [1.5, 0])


def test_notes_say_what_was_read():
    with pytest.warns(ReadingNote, match=r"read 52\.353,57 as 52353\.57 in `price`"):
        Table().fit({"price": TEXT["price"]})
    with pytest.warns(ReadingNote, match=r"`x` is text: 1 of 6 values is not a number \('many' at row 5"):
        Table().fit({"x": ["1", "2", "3", "4", "5", "many"]})
    with pytest.warns(ReadingNote, match=r"`code` is text, so its numbers are categories"):
        assert Table().fit({"code": ["0150", "5020", "0150"]}).columns_[0].kind == "category"
    Table(categories=["code"]).fit({"code": ["0150", "5020", "0150"]})  # as it should be: no note


def test_all_columns_that_do_not_fit_are_reported_at_once():
    table = Table().fit(
        {"a": [1.0, 2.0], "b": ["x", "y"], "d": [dt.date(2020, 1, 1), dt.date(2020, 3, 1)], "e": [1, 2]}
    )
    with pytest.raises(
        DataError, match=r"(?s)3 columns do not fit:.*'a' .*'u' at row 1.*'b'.*'z' at row 0.*'d' was a date"
    ):
        table.transform({"a": ["1", "u"], "b": ["z", "x"], "d": ["today", "tomorrow"], "e": [1, 2]})
    with pytest.raises(DataError, match="2 columns do not fit"):
        Table().fit({"a": [[1], [2]], "b": [str(i) + "x" for i in range(2)], "c": [[1], [2]]})


@pytest.mark.filterwarnings("ignore::likely.core.errors.ReadingNote")
def test_numbers_may_come_as_text_later():
    """Training had numbers; "1,200" is one."""
    table = Table(standardize=False).fit({"a": [1.0, 2.0]})
    np.testing.assert_array_equal(table.transform({"a": ["1,200", "3"]}), [[1200], [3]])


def test_what_is_not_text_stays_as_it_is():
    numbers = nw.from_native(pl.Series("a", [1, 2]), series_only=True)
    assert read_written(numbers) == (numbers, TextForm())
    assert read_written(nw.from_native(pl.Series("a", ["x", None]), series_only=True))[1] == TextForm()


def test_marks_of_gaps_beside_numbers_are_missing_and_codes_stay_codes():
    with pytest.warns(ReadingNote, match=r"read '-' as a missing value in `x`"):
        column = Table().fit({"x": ["1.5", "-", "2"]}).columns_[0]
    assert (column.kind, column.gaps) == ("number", True)
    assert Table().fit({"code": ["0150", "-", "5020"]}).columns_[0].kind == "category"


def test_two_units_are_text_in_training_and_refused_later():
    with pytest.warns(ReadingNote, match=r"`x` is text: '1\.5%' and '0\.02' are in different units"):
        Table().fit({"x": ["1.5%", "0.02"]})
    table = Table().fit({"x": [1.5, 2.0]})
    with pytest.raises(DataError, match=r"Column 'x' was a number in training: `x` is text: '\$5' and '€7' are in"):
        table.transform({"x": ["$5", "€7"]})


def test_a_file_and_its_table_say_the_same_of_a_column_that_is_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i}\n" for i in range(9)) + "many,9\n")
    with pytest.warns(ReadingNote) as first:
        frame = read_table(path)
    with pytest.warns(ReadingNote) as second:
        Table().fit(frame)
    assert [str(one.message) for one in first] == [str(one.message) for one in second]
