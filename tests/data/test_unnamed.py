import polars as pl
import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data.unnamed import placeholders, without_unnamed


def test_named_columns_stay_as_they_are():
    frame = pl.DataFrame({"a": [1], "b": [None]})
    assert without_unnamed(frame, "t.csv") is frame
    assert placeholders(["a", "b"]) == ["a", "b"]


def test_a_table_without_any_name_is_refused():
    frame = pl.DataFrame({name: [None, None] for name in placeholders(["", ""])})
    with pytest.raises(DataError, match="no column has a name"), pytest.warns(ReadingNote):
        without_unnamed(frame, "t.csv")
