"""Numbers and dates as people write them."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data.read import read_table
from likely.data.written import Written, mostly_numbers, written_dates, written_numbers


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["52,353.57", "12", None], [52353.57, 12.0, None]),
        (["52.353,57", "12"], [52353.57, 12.0]),
        (["1 234,5", "7"], [1234.5, 7.0]),
        (["1\u202f234", "7"], [1234, 7]),
        (["1'234", "7"], [1234, 7]),
        (["$1,200", "-$3", "7 USD"], [1200, -3, 7]),
        (["5%", "0"], [5, 0]),  # a zero is one in every unit
        (["1,200.5", "-", "N.A.", "3"], [1200.5, None, None, 3.0]),
        (["5 €", "€ 6", "7,5 EUR"], [5.0, 6.0, 7.5]),
        (["12 %", "3.5%"], [12.0, 3.5]),
        (["(300)", "20"], [-300, 20]),
        (["\u22125", "3"], [-5, 3]),
        (["1e3", "2.5"], [1000.0, 2.5]),
        (["1,234", "5,678"], [1234, 5678]),  # thousands, unless the file says otherwise
        (["1,23", "5,678"], [1.23, 5.678]),
    ],
)
def test_numbers_are_read_as_they_were_meant(texts, numbers):
    written = written_numbers(pl.Series("x", texts))
    assert written.values.to_list() == pytest.approx(numbers, nan_ok=True) or written.values.to_list() == numbers


@pytest.mark.parametrize(
    "texts",
    [["a", "1"], ["1,2,3"], ["1.2.3"], ["12-34"], ["$"], [None, None], ["1.5%", "0.02"], ["$5", "€7"], ["$5", "7%"]],
)
def test_what_is_not_a_number_stays_text(texts):
    assert written_numbers(pl.Series("x", texts, dtype=pl.String)) is None


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("31.12.2020", datetime.date(2020, 12, 31)),
        ("12/31/2020", datetime.date(2020, 12, 31)),
        ("31/12/2020", datetime.date(2020, 12, 31)),
        ("2020/12/31", datetime.date(2020, 12, 31)),
        ("5 Jan 2020", datetime.date(2020, 1, 5)),
        ("January 5, 2020", datetime.date(2020, 1, 5)),
        ("Jan 5 2020", datetime.date(2020, 1, 5)),
        ("2020-01", datetime.date(2020, 1, 1)),  # a month is its first day
        ("December 2020", datetime.date(2020, 12, 1)),
        ("31.12.2020 10:30", datetime.datetime(2020, 12, 31, 10, 30)),
        ("12/31/2020 3:04 PM", datetime.datetime(2020, 12, 31, 15, 4)),
    ],
)
def test_dates_are_read_in_common_forms(text, date):
    dates = written_dates(pl.Series("d", [text, None]))
    assert isinstance(dates, Written)
    assert dates.values.to_list() == [date, None]


def test_a_date_that_may_be_two_days_is_not_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("d,x\n03/04/2020,1\n05/06/2020,2\n")
    with pytest.warns(ReadingNote, match=r"`d` is text: '03/04/2020' may be of the form %m/%d/%Y or %d/%m/%Y"):
        assert read_table(path)["d"].dtype == pl.String


def test_the_rows_of_a_column_that_is_mostly_numbers():
    assert mostly_numbers(pl.Series(["1", "2,000", "3", "4", "5", "many"])) == [5]
    assert mostly_numbers(pl.Series(["1", "2", "3+", "4+", "5"])) == [2, 3]  # half or more are numbers
    assert mostly_numbers(pl.Series(["1", "2", *"abcd"])) == []
    assert len(mostly_numbers(pl.Series([*map(str, range(11)), *(f"w{i}" for i in range(90))]))) == 90
    assert mostly_numbers(pl.Series([*map(str, range(10)), *(f"w{i}" for i in range(90))])) == []


def test_a_note_says_how_a_column_was_read(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text('price,city\n"52,353.57",Bern\n"1,200.00",Oslo\n')
    with pytest.warns(ReadingNote, match=r"read 52,353\.57 as 52353\.57 in `price`"):
        assert read_table(path)["price"].to_list() == [52353.57, 1200.0]


def test_marks_and_missing_words_can_be_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1,234;x\nk.A.;y\n5,678;z\n")
    with pytest.warns(ReadingNote):
        assert read_table(path, missing=["k.A."])["a"].to_list() == [1.234, None, 5.678]
    with pytest.warns(ReadingNote):
        assert read_table(path, missing="k.A.", thousands=",")["a"].to_list() == [1234, None, 5678]
    with pytest.raises(DataError, match="decimals are parted"):
        read_table(path, decimal=";")
    with pytest.raises(DataError, match="thousands are parted"):
        read_table(path, decimal=",", thousands=",")
    with pytest.raises(DataError, match="separated by one character"):
        read_table(path, separator="::")


def test_a_mostly_numeric_column_says_which_rows_are_not(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i}\n" for i in range(9)) + "9,about ten\n")
    with pytest.warns(ReadingNote, match=r"1 of 10 values is not a number \('about ten' at row 9"):
        assert read_table(path)["b"].dtype == pl.String


def test_a_column_of_numbers_and_a_word_is_never_silently_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i if i % 5 < 3 else 'bad'},{i}\n" for i in range(50)))
    with pytest.warns(ReadingNote, match=r"`a` is text: 20 of 50 values are not numbers .*--missing bad"):
        assert read_table(path)["a"].dtype == pl.String


def test_marks_of_gaps_are_missing_beside_numbers_alone(tmp_path):
    path = tmp_path / "t.csv"
    marks = ["n/a", "NA", "-", "null", "", "#N/A", "?", "N.A.", "#DIV/0!"]
    fields = zip([*marks, 7], "-abcdefghi", strict=True)
    path.write_text("a,b\n" + "".join(f"{mark},{word}\n" for mark, word in fields))
    with pytest.warns(ReadingNote) as notes:
        frame = read_table(path)
    assert frame["a"].to_list() == [None] * 9 + [7]
    assert frame["b"][0] == "-"
    expected = [f"read {mark!r} as a missing value in `a`." for mark in ("-", "N.A.", "#DIV/0!")]
    assert [str(one.message) for one in notes] == expected


@pytest.mark.parametrize(("first", "second"), [("1.5%", "0.02"), ("$5", "€7"), ("$5", "7%")])
def test_numbers_in_two_units_stay_text_and_both_are_named(tmp_path, first, second):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{first},1\n{second},2\n")
    with pytest.warns(ReadingNote) as notes:
        assert read_table(path)["a"].to_list() == [first, second]
    said = f"`a` is text: {first!r} and {second!r} are in different units; write all values in one."
    assert [str(one.message) for one in notes] == [said]


def test_blanks_may_stand_beside_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a, b, "c"\n1, "x, y", 2\n3, "z", 4\n')
    assert read_table(path).to_dict(as_series=False) == {"a": [1, 3], "b": ["x, y", "z"], "c": [2, 4]}
