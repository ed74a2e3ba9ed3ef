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
