"""Numbers and dates as people write them: 52.353,57 or $1,200 or (300) or 12 % or 31.12.2020.

A column of text is a column of numbers if every value is one under the same marks: what parts the decimals, and what
parts the thousands. Where two readings fit (1,234), the marks of the file decide.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ..core.errors import DataError
from ..core.plural import verb
from .frame import is_number
from .gaps import tell_gaps, without_gaps
from .notes import note, read_as, together
from .units import CURRENCY, mixed_units, unit_kind

__all__ = [
    "MARKS",
    "Marks",
    "Written",
    "marks_of",
    "mostly_numbers",
    "not_numbers",
    "tell_numbers",
    "why_text",
    "with_written",
    "written_dates",
    "written_numbers",
]

SPACES = "\u0020\u00a0\u2009\u202f"
"""That part thousands: a blank, and the unbreakable and thin ones."""
SHOWN = 3
"""Rows that a message names."""
MOSTLY = 0.5
"""The fraction of numbers from which on a column of text may have been meant to be one of numbers."""
FEW = 10
"""Different numbers beyond which it may have been meant so whatever else it holds."""
DATES = (
    "%Y-%m-%d",
    "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d",
    "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")


@dataclass(frozen=True)
class Marks:
    """What parts decimals and thousands in written numbers."""

    decimal: str
    thousands: str

    @property
    def pattern(self) -> str:
        """A regular expression of a whole field, its digits in a group of their own."""
        parting = f"[{SPACES}]" if self.thousands == " " else f"[{_escaped(self.thousands)}]"
        decimal = _escaped(self.decimal)
        grouped = rf"[1-9]\d{{0,2}}(?:{parting}\d{{3}})+(?:{decimal}\d*)?"
        plain = rf"\d+(?:{decimal}\d*)?|{decimal}\d+"
        number = rf"(?:{grouped}|(?:{plain})(?:[eE][-+]?\d+)?)"
        return rf"^\(?\s*[-+]?\s*{CURRENCY}?\s*[-+]?\s*({number})\s*(?:{CURRENCY}|%)?\s*\)?$"


MARKS = (Marks(".", ","), Marks(",", "."), Marks(".", " "), Marks(",", " "), Marks(".", "'’"), Marks(",", "'’"))


def marks_of(decimal: str | None, thousands: str | None) -> tuple[Marks, ...]:
    """The marks that written numbers may have; all that are known if none are given.

    >>> marks_of(",", None)[0]
    Marks(decimal=',', thousands='.')
    """
    if decimal not in (None, ".", ","):
        raise DataError(f"decimal={decimal!r}: decimals are parted by '.' or ','.")
    if thousands not in (None, ".", ",", " ", "'") or (thousands is not None and thousands == decimal):
        raise DataError(
            f"thousands={thousands!r}: thousands are parted by ',', '.', ' ' or \"'\", not as decimals are."
        )
    chosen = tuple(m for m in MARKS if decimal in (None, m.decimal) and thousands in (None, *m.thousands))
    return chosen or (Marks(decimal or ".", thousands or ","),)


class Written(NamedTuple):
    """A column read from text: its values, one value as it was written, the marks or the form of all, marks of gaps."""

    values: pl.Series
    example: str
    marks: Marks | None = None
    form: str = ""
    gaps: list[str] = []  # noqa: RUF012 (never changed)


@together()
def with_written(
    frame: pl.DataFrame, text: pl.DataFrame, marks: tuple[Marks, ...]
) -> tuple[pl.DataFrame, dict[str, Marks]]:
    """The frame with columns of text that are written numbers or dates read as such, and the marks of the numbers."""
    columns, seen = [], {}
    points = all(choice.decimal == "," for choice in marks)  # so that a point parts thousands
    for series, raw in zip(frame.iter_columns(), text.iter_columns(), strict=True):
        if series.dtype == pl.String or (points and series.dtype == pl.Float64):
            numbers = _numbers_in(series, raw, marks)
            if numbers is not None and numbers.marks is not None:
                seen[series.name] = numbers.marks
                columns.append(numbers.values.rename(series.name))
                continue
        written = _column(series, raw, marks)
        columns.append(series if written is None else written.rename(series.name))
    return pl.DataFrame(columns), seen


def _numbers_in(series: pl.Series, raw: pl.Series, marks: tuple[Marks, ...]) -> Written | None:
    """The numbers of a column of text; of a column of numbers, where the marks tell that its points part thousands."""
    numbers = written_numbers(raw, marks)
    if numbers is None:
        if series.dtype == pl.Float64 and raw.str.contains(".", literal=True).any():
            note(f"`{series.name}` has decimal points, other than the marks say; read as they stand.")
        return None
    if series.dtype == pl.Float64 and numbers.values.equals(series, check_names=False):
        return None
    tell_numbers(numbers, raw, series.name)
    return numbers


def tell_numbers(numbers: Written, text: pl.Series, name: str) -> None:
    """Notes on how a column of text was read as numbers: one for each form, and one for each mark of a gap."""
    place = text.to_list().index(numbers.example)
    if not is_number(numbers.example):
        decimal = numbers.marks.decimal if numbers.marks is not None else ""
        read_as(f"{unit_kind(text)}{decimal}", numbers.example, numbers.values[place], name)
    tell_gaps(numbers.gaps, name)


def why_text(text: pl.Series, marks: tuple[Marks, ...] = MARKS) -> str:
    """Why a column that holds numbers is text: the rows that are not numbers, or two units; "" for one of words.

    >>> why_text(pl.Series("share", ["1.5%", "0.02"]))
    "`share` is text: '1.5%' and '0.02' are in different units; write all values in one."
    """
    if not not_numbers(text, marks) and (units := mixed_units(text)):
        return f"`{text.name}` is text: {units[0]!r} and {units[1]!r} are in different units; write all values in one."
    rows = mostly_numbers(text, marks)
    if not rows:
        return ""
    shown = ", ".join(f"{text[row]!r} at row {row}" for row in rows[:SHOWN]) + (", …" if len(rows) > SHOWN else "")
    word = str(text[rows[0]])
    return (
        f"`{text.name}` is text: {len(rows)} of {len(text) - text.null_count()} values "
        f"{verb(len(rows), 'is not a number', 'are not numbers')} ({shown}, counted from 0). Fix "
        f"{verb(len(rows), 'it', 'them')}, or say what is missing: read_table(path, missing=[{word!r}]), or --missing "
        f"{shlex.quote(word)} on the command line."
    )


def _column(series: pl.Series, raw: pl.Series, marks: tuple[Marks, ...]) -> pl.Series | None:
    if series.dtype.is_temporal():
        first = raw.drop_nulls()[0]
        if not str(first).startswith(str(series.drop_nulls()[0])[:10]):
            dates = _date(raw)
            return series if dates is None else dates
        return None
    if series.dtype != pl.String:
        return None
    why = why_text(raw, marks)
    if why:
        note(why)
        return None
    return _date(raw)


def _date(raw: pl.Series) -> pl.Series | None:
    dates = written_dates(raw)
    if isinstance(dates, list):
        note(
            f"`{raw.name}` is text: {raw.drop_nulls()[0]!r} may be of the form {' or '.join(dates)}; write dates as "
            "2020-12-31."
        )
        return raw
    if dates is None:
        return None
    read_as("dates", dates.example, dates.values.drop_nulls()[0], raw.name)
    return dates.values


def written_numbers(series: pl.Series, marks: tuple[Marks, ...] = MARKS) -> Written | None:
    """The numbers that all of these texts are, by the first marks that fit; None if some are not numbers.

    >>> written_numbers(pl.Series(["$1,200.50", "(300)", None])).values.to_list()
    [1200.5, -300.0, None]
    >>> written_numbers(pl.Series(["1.200,5", "3"])).values.to_list()
    [1200.5, 3.0]
    """
    rest, gaps = without_gaps(series)
    text = _clean(rest)
    if text.null_count() == len(text):
        return None
    for choice in marks:
        if text.str.contains(choice.pattern).all():
            if mixed_units(text):
                return None
            return Written(_numbers(text, choice), _example(rest), choice, gaps=gaps)
    return None


def _example(series: pl.Series) -> str:
    """The longest value of those that are written other than as plain numbers."""
    values = series.drop_nulls().unique(maintain_order=True).to_list()
    strange = [value for value in values if not is_number(value)]
    return str(max(strange or values, key=len))


def mostly_numbers(series: pl.Series, marks: tuple[Marks, ...] = MARKS) -> list[int]:
    """The rows that are not numbers, of a column of text of which half are, or more than a few different; [] elsewhere.

    >>> mostly_numbers(pl.Series(["1", "2", "3", "4", "many"]))
    [4]
    """
    count = len(series) - series.null_count()
    if count < 5:
        return []
    rows = not_numbers(series, marks)
    if count - len(rows) >= MOSTLY * count:
        return rows
    others = series.filter(~pl.Series(range(len(series))).is_in(rows))
    return rows if others.drop_nulls().n_unique() > FEW else []


def not_numbers(series: pl.Series, marks: tuple[Marks, ...] = MARKS) -> list[int]:
    """The rows that are neither numbers nor missing, by the marks under which they are the fewest.

    >>> not_numbers(pl.Series(["1.200,5", "many", "7", "-"]))
    [1]
    """
    text = _clean(without_gaps(series)[0])
    wrong = [[row for row, good in enumerate(text.str.contains(m.pattern).to_list()) if good is False] for m in marks]
    return min(wrong, key=len)


def written_dates(series: pl.Series) -> Written | list[str] | None:
    """The dates that all of these texts are; the forms that fit if they tell different days; None if there is none.

    >>> written_dates(pl.Series(["31.12.2020", "1.1.2021"])).values.to_list()
    [datetime.date(2020, 12, 31), datetime.date(2021, 1, 1)]
    >>> written_dates(pl.Series(["03/04/2020", "05/06/2020"]))
    ['%m/%d/%Y', '%d/%m/%Y']
    """
    text = series.str.strip_chars()
    count = len(text) - text.null_count()
    if not count or not text.str.contains(r"^[\w.,/ :-]*\d[\w.,/ :-]*$").all():
        return None
    fitting: dict[str, pl.Series] = {}
    for time in TIMES:
        kind = pl.Datetime("us") if time else pl.Date
        for form in DATES:
            values = text.str.strptime(kind, form + time, strict=False, exact=True)
            if len(values) - values.null_count() == count and _is_sensible(values):
                fitting[form + time] = values
    if not fitting:
        return None
    (form, first), *others = fitting.items()
    if any(not first.equals(other) for _, other in others):
        return list(fitting)
    return Written(first, str(series.drop_nulls()[0]), form=form)


def _is_sensible(values: pl.Series) -> bool:
    """Two digits must not be read as the year 20."""
    years = values.dt.year()
    return bool((years.min() or 0) >= 1000)  # type: ignore[operator]


def _clean(series: pl.Series) -> pl.Series:
    return series.str.strip_chars(SPACES + "\t\r\n").str.replace_all("[\u2212\u2013]", "-")


def _numbers(text: pl.Series, marks: Marks) -> pl.Series:
    digits = text.str.extract(marks.pattern, 1)
    for mark in SPACES if marks.thousands == " " else marks.thousands:
        digits = digits.str.replace_all(mark, "", literal=True)
    if marks.decimal != ".":
        digits = digits.str.replace_all(marks.decimal, ".", literal=True)
    negative = text.str.contains(r"^\(.*\)$|^\s*[^\d]*-")
    values = digits.cast(pl.Float64)
    values = pl.select(pl.when(negative).then(-values).otherwise(values).alias(text.name)).to_series()
    whole = not text.str.contains(rf"{_escaped(marks.decimal)}\d|[eE]").any()
    return values.cast(pl.Int64) if whole and bool((values.abs() < 2**53).all()) else values


def _escaped(mark: str) -> str:
    return "".join(rf"\{c}" if c in ".'^$*+?()[]{}|\\" else c for c in mark) if mark != "'’" else mark
