"""Text in a frame that was meant as numbers or dates: 52,353.57, 12 %, € 5, 31.12.2020, read as files are.

Plain digits are the exception: whoever made `0150` text may have meant that (postcodes), so they stay categories.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw

from ..core.errors import DataError
from .frame import is_number
from .notes import note, read_as

__all__ = ["TextForm", "dates_of_text", "read_text_column", "read_written"]


class TextForm(NamedTuple):
    """How the values of a column were written: the marks of its numbers, or the form of its dates."""

    decimal: str = ""
    thousands: str = ""
    date: str = ""


def read_written(series: nw.Series[Any]) -> tuple[nw.Series[Any], TextForm]:
    """A column of text as numbers or dates if all of its values are written so; any other column as it is.

    A `ReadingNote` says what was read; of a column whose values are nearly all numbers, which rows are not.

    >>> import polars as pl
    >>> from likely.core.errors import ReadingNote
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ReadingNote)
    ...     values, form = read_written(nw.from_native(pl.Series("price", ["€ 5", "1.200,50"]), series_only=True))
    >>> values.to_list(), form.decimal
    ([5.0, 1200.5], ',')
    """
    from .written import tell_numbers, why_text, written_dates, written_numbers

    text = _text(series)
    if text is None or text.null_count() == len(text):
        return series, TextForm()
    name = str(series.name)
    if all(is_number(value) for value in text.drop_nulls().unique().to_list()):
        return series, TextForm()
    numbers = written_numbers(text)
    if numbers is not None and numbers.marks is not None and not _codes(text, numbers.gaps):
        tell_numbers(numbers, text, name)
        return _series(numbers.values, name), TextForm(numbers.marks.decimal, numbers.marks.thousands)
    why = why_text(text)
    if why:
        note(why)
        return series, TextForm()
    dates = written_dates(text)
    if isinstance(dates, list):
        note(f"`{name}` is text: {text.drop_nulls()[0]!r} may be of the form {' or '.join(dates)}; make it dates.")
        return series, TextForm()
    if dates is None:
        return series, TextForm()
    read_as("dates", dates.example, dates.values.drop_nulls()[0], name)
    return _series(dates.values, name), TextForm(date=dates.form)


def read_text_column(series: nw.Series[Any], form: TextForm) -> nw.Series[Any]:
    """A later column, as text that is written in the form of the training rows; what is not text stays as it is."""
    text = _text(series)
    if text is None or text.null_count() == len(text):
        return series
    return _dates(series, text, form.date) if form.date else _numbers(series, text, form)


def dates_of_text(series: nw.Series[Any]) -> nw.Series[Any]:
    """A column of text as dates, if all of its values are written so in one form; any other column as it is."""
    from .written import written_dates

    text = _text(series)
    dates = None if text is None or text.null_count() == len(text) else written_dates(text)
    if dates is None or isinstance(dates, list):
        return series
    read_as("dates", dates.example, dates.values.drop_nulls()[0], str(series.name))
    return _series(dates.values, str(series.name))


def _numbers(series: nw.Series[Any], text: Any, form: TextForm) -> nw.Series[Any]:
    """The numbers that a column of text holds, or a `DataError` that names the rows that are none."""
    from .marks import MARKS, Marks
    from .written import not_numbers, shown_at, tell_numbers, why_text, written_numbers

    marks = (Marks(form.decimal, form.thousands),) if form.decimal else MARKS
    numbers = written_numbers(text, marks)
    if numbers is None:
        rows = not_numbers(text, marks)
        if not rows:
            raise DataError(f"Column {series.name!r} was a number in training: {why_text(text, marks)}")
        fault = "is not a number" if len(rows) == 1 else "are not numbers"
        raise DataError(
            f"Column {series.name!r} was a number in training and is text now: {shown_at(text, rows)} "
            f"({len(rows)} of {len(text)}, counted from 0) {fault}."
        )
    if not form.decimal:
        tell_numbers(numbers, text, str(series.name))
    return _series(numbers.values, str(series.name))


def _codes(text: Any, gaps: list[str]) -> bool:
    """Whether plain digits beside marks of gaps are codes: some begin with 0, as in `0150`."""
    plain = [value for value in text.drop_nulls().unique().to_list() if value.strip() not in gaps]
    return all(map(is_number, plain)) and any(len(value) > 1 and value.isdigit() and value[0] == "0" for value in plain)


def _dates(series: nw.Series[Any], text: Any, form: str) -> nw.Series[Any]:
    from .written import dated, shown_at

    values = dated(text.str.strip_chars(), form)
    wrong = [row for row, bad in enumerate((values.is_null() & text.is_not_null()).to_list()) if bad]
    if wrong:
        raise DataError(
            f"Column {series.name!r} had dates of the form {form} in training; {shown_at(text, wrong)} "
            f"({len(wrong)} of {len(text)}, counted from 0) {'is' if len(wrong) == 1 else 'are'} not."
        )
    return _series(values, str(series.name))


def _text(series: nw.Series[Any]) -> Any:
    """A column of text in polars; None for one of another type. Categories stay what they are."""
    if series.dtype != nw.String:
        return None
    import polars as pl

    gaps = series.is_null().to_list()  # pandas gives NaN where others give None
    values = [None if gap else value for value, gap in zip(series.to_list(), gaps, strict=True)]
    return pl.Series(str(series.name), values, dtype=pl.String)


def _series(values: Any, name: str) -> nw.Series[Any]:
    return nw.from_native(values.rename(name), series_only=True)
