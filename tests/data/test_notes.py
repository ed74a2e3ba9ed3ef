"""One line for all columns that were read in another form than they stand there."""

from __future__ import annotations

import pytest

from likely.core.errors import ReadingNote
from likely.data import Table, read_table
from likely.data.notes import read_as, together

FIELDS = {"price": ["52,353.57", "1,200.00"], "area": ["1,000.5", "2,000.5"], "tax": ["3,000", "4,000"]}


def told(notes):
    return [str(one.message) for one in notes if issubclass(one.category, ReadingNote)]


def test_a_file_gets_one_line_for_its_numbers_and_one_for_its_dates(tmp_path, recwarn):
    path = tmp_path / "t.tsv"
    dates = {"from": ["31.12.2020", "1.1.2021"], "to": ["31.12.2021", "1.1.2022"]}
    rows = zip(*FIELDS.values(), *dates.values(), ["7,000", "8,000"], strict=True)
    path.write_text("\n".join("\t".join(row) for row in [(*FIELDS, *dates, "fee"), *rows]))
    read_table(path)
    assert told(recwarn) == [
        "read 52,353.57 as 52353.57 in `price`, `area` and 2 others.",
        "read 31.12.2020 as 2020-12-31 in `from` and `to`.",
    ]


def test_each_form_of_numbers_gets_its_own_line_and_iso_dates_none(recwarn):
    Table().fit(
        {
            "price": ["$1,151.57", "$2,000.00"],
            "share": ["12.3%", "1.3%"],
            "size": ["1,5", "2,75"],
            "day": ["2020-01-01", "2020-01-02"],
        }
    )
    assert told(recwarn) == [
        "read $1,151.57 as 1151.57 in `price`.",
        "read 12.3% as 12.3 in `share`.",
        "read 2,75 as 2.75 in `size`.",
    ]


def test_a_frame_gets_one_line(recwarn):
    Table().fit(FIELDS)
    assert told(recwarn) == ["read 52,353.57 as 52353.57 in `price`, `area` and `tax`."]


def test_the_outermost_tells_and_also_after_an_error(recwarn):
    def read():
        with together():
            with together():
                read_as("numbers", "1,5", 1.5, "a")
            read_as("numbers", "2,5", 2.5, "b")
            raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        read()
    assert told(recwarn) == ["read 1,5 as 1.5 in `a` and `b`."]


def test_alone_a_column_is_told_at_once():
    with pytest.warns(ReadingNote, match=r"^read 31\.12\.2020 as 2020-12-31 in `day`\.$"):
        read_as("dates", "31.12.2020", "2020-12-31", "day")
