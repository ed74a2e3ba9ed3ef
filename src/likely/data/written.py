"""Numbers and dates as people write them: 52.353,57 or $1,200 or (300) or 12 % or 31.12.2020.

A column of text is a column of numbers if every value is one under the same marks: what parts the decimals, and what
parts the thousands. Where two readings fit (1,234), the marks of the file decide.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

import polars as pl

from ..core.plural import verb
from .frame import is_number
from .gaps import tell_gaps, without_gaps
from .marks import MARKS, POINTS, Decimals, Marks, cleaned, decimals_of, marks_of
from .notes import note, read_as, together
from .reading import Reading
from .units import mixed_units, unit_kind

__all__ = [
    "Written",
    "dated",
    "mostly_numbers",
    "not_numbers",
    "shown_at",
    "tell_numbers",
    "why_text",
    "with_written",
    "written_dates",
    "written_numbers",
]

SHOWN = 3
"""Rows that a message names."""
MOSTLY = 0.5
"""The fraction of numbers from which on a column of text may have been meant to be one of numbers."""
FEW = 10
"""Different numbers beyond which it may have been meant so whatever else it holds."""
DATES = (
    "%Y-%m-%d",
    "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d",
    "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
MONTHS = ("%Y-%m", "%b %Y", "%B %Y")
FORMS = (*(form + time for time in TIMES for form in DATES), *MONTHS)


class Written(NamedTuple):
    """A column read from text: its values, one value as it was written, the marks or the form of all, marks of gaps."""

    values: pl.Series
    example: str
    marks: Marks | None = None
    form: str = ""
    gaps: list[str] = []  # noqa: RUF012 (never changed)


@together()
def with_written(
    frame: pl.DataFrame, text: pl.DataFrame, reading: Reading, separator: str
) -> tuple[pl.DataFrame, Decimals]:
    """The frame with columns of text that are written numbers or dates read as such, and how its decimals are parted.

    Where fields are separated by semicolons and nothing else tells, a comma parts decimals.
    """
    marks = marks_of(reading.decimal, reading.thousands)
    words = [text[column.name] for column in frame.iter_columns() if column.dtype == pl.String]
    plain = [text[column.name] for column in frame.iter_columns() if column.dtype == pl.Float64]
    decimals = decimals_of(words, plain, marks, reading.decimals)
    columns = []
    for series, raw in zip(frame.iter_columns(), text.iter_columns(), strict=True):
        if series.dtype == pl.String:
            written = _text(raw, decimals.order(marks, series.name, "," if separator == ";" else "."))
        elif series.dtype == pl.Float64 and decimals.file == ",":
            written = _thousands(raw) if series.name not in decimals.own else None
            if reading.decimal == "," and series.name in decimals.own and series.name not in reading.decimals:
                note(f"`{series.name}` has decimal points, other than the marks say; read as they stand.")
        else:
            written = _calendar(series, raw) if series.dtype.is_temporal() else None
        columns.append(series if written is None else written.rename(series.name))
    return pl.DataFrame(columns), decimals


def _text(raw: pl.Series, marks: tuple[Marks, ...]) -> pl.Series | None:
    """The numbers or dates that a column of text was meant to be."""
    numbers = written_numbers(raw, marks)
    if numbers is not None:
        tell_numbers(numbers, raw, raw.name)
        return numbers.values
    why = why_text(raw, marks)
    if why:
        note(why)
        return None
    return _date(raw)


def _thousands(raw: pl.Series) -> pl.Series | None:
    """Plain numbers of a file with decimal commas, whose points part thousands: 8.322 is 8322."""
    if not raw.str.contains(".", literal=True).any():
        return None
    values = POINTS.values(cleaned(raw))
    example = max(raw.drop_nulls().to_list(), key=len)
    read_as("thousands", example, values[raw.to_list().index(example)], raw.name)
    return values


def _calendar(series: pl.Series, raw: pl.Series) -> pl.Series | None:
    """Dates that were read in another form than they are written in."""
    first = raw.drop_nulls()[0]
    return None if str(first).startswith(str(series.drop_nulls()[0])[:10]) else _date(raw)


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
    word = str(text[rows[0]])
    return (
        f"`{text.name}` is text: {len(rows)} of {len(text) - text.null_count()} values "
        f"{verb(len(rows), 'is not a number', 'are not numbers')} ({shown_at(text, rows)}, counted from 0). Fix "
        f"{verb(len(rows), 'it', 'them')}, or say what is missing: read_table(path, missing=[{word!r}]), or --missing "
        f"{shlex.quote(word)} on the command line."
    )


def shown_at(text: pl.Series, rows: list[int]) -> str:
    """The first few of these rows, for a message.

    >>> shown_at(pl.Series(["8", "8S0", "many"]), [1, 2])
    "'8S0' at row 1, 'many' at row 2"
    """
    return ", ".join(f"{text[row]!r} at row {row}" for row in rows[:SHOWN]) + (", …" if len(rows) > SHOWN else "")


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
    text = cleaned(rest)
    if text.null_count() == len(text):
        return None
    for choice in marks:
        if text.str.contains(choice.pattern).all():
            if mixed_units(text):
                return None
            return Written(choice.values(text), _example(rest), choice, gaps=gaps)
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
    text = cleaned(without_gaps(series)[0])
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
    first = text.drop_nulls().head(1)  # which most forms do not fit
    fitting: dict[str, pl.Series] = {}
    for form in (form for form in FORMS if not dated(first, form).null_count()):
        values = dated(text, form)
        if len(values) - values.null_count() == count and _is_sensible(values):
            fitting[form] = values
    if not fitting:
        return None
    (form, dates), *others = fitting.items()
    if any(not dates.equals(other) for _, other in others):
        return list(fitting)
    return Written(dates, str(series.drop_nulls()[0]), form=form)


def dated(text: pl.Series, form: str) -> pl.Series:
    """Texts of a form as dates, others as missing; a month is its first day.

    >>> dated(pl.Series(["2020-01", "then"]), "%Y-%m").to_list()
    [datetime.date(2020, 1, 1), None]
    """
    if "%d" not in form:
        text, form = text + "-01", form + "-%d"
    kind = pl.Datetime("us") if ":%M" in form else pl.Date
    return text.str.strptime(kind, form, strict=False, exact=True)


def _is_sensible(values: pl.Series) -> bool:
    """Two digits must not be read as the year 20."""
    years = values.dt.year()
    return bool((years.min() or 0) >= 1000)  # type: ignore[operator]
