import polars as pl

from likely.data.gaps import without_gaps


def test_marks_are_made_missing_whatever_their_case_and_blanks():
    text, marks = without_gaps(pl.Series("a", ["1", " - ", "n/A", "none", None]))
    assert text.to_list() == ["1", None, None, "none", None]  # none may be 0
    assert marks == ["-", "n/A"]


def test_a_column_without_marks_stays_as_it_is():
    text = pl.Series("a", ["1", "x"])
    assert without_gaps(text)[0] is text
