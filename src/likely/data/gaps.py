"""Marks that stand for a missing value in columns of numbers: `-`, `n.a.`, `unknown`, `#DIV/0!`.

In a column of words such a mark may be a word like others, so it is a gap only where all other values are numbers.
`none` is not one: of children, it is 0.
"""

from __future__ import annotations

import polars as pl

from .notes import read_as

__all__ = ["GAPS", "tell_gaps", "without_gaps"]

GAPS = (
    *("", "?", "-", "--", "---", "–", "—", ".", "..", "..."),
    *("na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "null", "missing", "unknown"),
    *("#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
)
"""In lower case and without blanks around; letters may be of either case."""


def without_gaps(series: pl.Series) -> tuple[pl.Series, list[str]]:
    """A column of text with these marks made missing, and the marks that it has.

    >>> text, marks = without_gaps(pl.Series("a", ["1", "-", "N.A.", "2"]))
    >>> text.to_list(), marks
    (['1', None, None, '2'], ['-', 'N.A.'])
    """
    mark = series.str.strip_chars().str.to_lowercase().is_in(list(GAPS)).fill_null(False)
    if not mark.any():
        return series, []
    rest = pl.select(pl.when(mark).then(None).otherwise(series).alias(series.name)).to_series()
    return rest, series.filter(mark).str.strip_chars().unique(maintain_order=True).to_list()


def tell_gaps(marks: list[str], column: str) -> None:
    """A note on each mark that was read as a missing value."""
    for mark in marks:
        read_as(f"missing {mark}", repr(mark), "a missing value", column)
