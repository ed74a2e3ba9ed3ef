"""What parts decimals and thousands in written numbers, and what the columns of a file tell of it together.

1.234,5   decimals are parted by a comma          1,234   either is, so the other columns of the file decide
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from ..core.errors import DataError
from .gaps import without_gaps
from .units import CURRENCY

__all__ = ["MARKS", "POINTS", "SPACES", "Decimals", "Marks", "cleaned", "decimals_of", "marks_of"]

SPACES = "\u0020\u00a0\u2009\u202f"
"""That part thousands: a blank, and the unbreakable and thin ones."""


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
        groups = rf"[1-9]\d{{0,2}}(?:{parting}\d{{3}})+|[1-9]\d?(?:{parting}\d{{2}})+{parting}\d{{3}}"  # 12,34,567 too
        plain = rf"\d+(?:{decimal}\d*)?|{decimal}\d+"
        number = rf"(?:(?:{groups})(?:{decimal}\d*)?|(?:{plain})(?:[eE][-+]?\d+)?)"
        return rf"^\(?\s*[-+]?\s*{CURRENCY}?\s*[-+]?\s*({number})\s*(?:{CURRENCY}|%)?\s*\)?$"

    def values(self, text: pl.Series) -> pl.Series:
        """The numbers that cleaned texts of this pattern are; integers where none has decimals."""
        digits = text.str.extract(self.pattern, 1)
        for mark in SPACES if self.thousands == " " else self.thousands:
            digits = digits.str.replace_all(mark, "", literal=True)
        if self.decimal != ".":
            digits = digits.str.replace_all(self.decimal, ".", literal=True)
        negative = text.str.contains(r"^\(.*\)$|^\s*[^\d]*-")
        values = digits.cast(pl.Float64)
        values = pl.select(pl.when(negative).then(-values).otherwise(values).alias(text.name)).to_series()
        whole = not text.str.contains(rf"{_escaped(self.decimal)}\d|[eE]").any()
        return values.cast(pl.Int64) if whole and bool((values.abs() < 2**53).all()) else values


MARKS = (Marks(".", ","), Marks(",", "."), Marks(".", " "), Marks(",", " "), Marks(".", "'’"), Marks(",", "'’"))


POINTS = MARKS[1]
"""Under which the points of 8.322 part thousands."""


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


class Decimals(NamedTuple):
    """The mark that parts decimals in a file, None if no column tells or they disagree; columns with another one."""

    file: str | None
    own: Mapping[str, str]

    def order(self, marks: Sequence[Marks], column: str, usual: str) -> tuple[Marks, ...]:
        """The marks that the numbers of a column of text may have, the most probable first."""
        if column in self.own:
            return tuple(m for m in MARKS if m.decimal == self.own[column])
        return tuple(sorted(marks, key=lambda choice: choice.decimal != (self.file or usual)))


def decimals_of(
    words: Iterable[pl.Series], numbers: Iterable[pl.Series], marks: Sequence[Marks], known: Mapping[str, str]
) -> Decimals:
    """What the columns of text tell of decimals, and those of plain numbers (as text); `known` columns are not asked.

    >>> decimals_of([pl.Series("a", ["1,234"]), pl.Series("b", ["0,5"])], [pl.Series("c", ["8.322"])], MARKS, {})
    Decimals(file=',', own={})
    >>> decimals_of([pl.Series("b", ["0,5"])], [pl.Series("c", ["8.3"])], MARKS, {})
    Decimals(file=None, own={'b': ',', 'c': '.'})
    """
    fits = {str(text.name): {m.decimal for m in marks if _fits(text, m)} for text in words if text.name not in known}
    told = {name: next(iter(fit)) for name, fit in fits.items() if len(fit) == 1}
    given = {choice.decimal for choice in marks}
    if "," in (given if len(given) == 1 else told.values()) or any(len(fit) > 1 for fit in fits.values()):
        points = (text for text in numbers if text.name not in known and text.str.contains(".", literal=True).any())
        told |= {str(text.name): "." for text in points if POINTS not in marks or not _fits(text, POINTS)}
    marked = given if len(given) == 1 else set(told.values())
    file = next(iter(marked)) if len(marked) == 1 else None
    return Decimals(file, {name: mark for name, mark in {**told, **known}.items() if mark != file})


def _fits(text: pl.Series, marks: Marks) -> bool:
    rest = cleaned(without_gaps(text)[0])
    return rest.null_count() < len(rest) and bool(rest.str.contains(marks.pattern).all())


def cleaned(series: pl.Series) -> pl.Series:
    """Texts without blanks around them, each minus as a hyphen."""
    return series.str.strip_chars(SPACES + "\t\r\n").str.replace_all("[\u2212\u2013]", "-")


def _escaped(mark: str) -> str:
    return "".join(rf"\{c}" if c in ".'^$*+?()[]{}|\\" else c for c in mark) if mark != "'’" else mark
