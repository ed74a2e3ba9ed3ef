"""How one column of a table becomes numbers: what was learned from the training rows, and the encoding it gives.

    number     (x − mean) / deviation            category   1 for the row's level, 0 for the others
    boolean    0 or 1                            date       days since the first one, and sine and cosine of its cycles

A missing number, boolean or date is set to the training mean beside an indicator column; a missing category is a level
of its own. What the training rows did not show (a new category, a gap in a column without gaps) cannot be represented.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np

from ..core.errors import DataError, SpecError
from ..core.kinds import check_kinds
from ..core.plural import counted, verb
from .dates import CYCLES, DAY, as_days, day_text
from .frame import some
from .text_values import TextForm, dates_of_text, read_text_column

__all__ = [
    "Category",
    "Column",
    "Constant",
    "Date",
    "Number",
    "as_numbers",
    "as_text",
    "column_from_json",
    "describe",
    "kind_of",
]

Kind = Literal["number", "boolean", "category", "date", "duration", "empty"]
KINDS: dict[str, type[Column]] = {}


@dataclass(frozen=True)
class Column:
    """What was learned of one column. `unseen="ignore"` stands a zero in for what cannot be represented."""

    name: str
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        KINDS[cls.kind] = cls

    @property
    def label(self) -> str:
        """The kind in words."""
        return self.kind

    @property
    def features(self) -> list[str]:
        """The names of the numbers this column becomes."""
        return [self.name]

    @property
    def units(self) -> list[float]:
        """How much of the column's own unit one unit of each of these numbers is."""
        scale = float(getattr(self, "scale", 1.0)) or 1.0
        return [scale, *(1.0 for _ in self.features[1:])] if self.features else []

    @property
    def centres(self) -> list[float]:
        """Where the column is where each of these numbers is 0."""
        moved = float(getattr(self, "centre", 0.0)) if getattr(self, "scale", 0.0) else 0.0
        return [moved, *(0.0 for _ in self.features[1:])] if self.features else []

    def encode(self, series: nw.Series[Any], unseen: str) -> np.ndarray:
        """The rows as numbers, (n, len(features))."""
        raise NotImplementedError(f"{type(self).__name__} must encode a column")

    def summary(self) -> str:
        """The encoding in words."""
        raise NotImplementedError(f"{type(self).__name__} must describe itself")

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Constant(Column):
    """The same value in every training row, or none: it cannot tell rows apart and becomes 0, whatever comes later."""

    kind: ClassVar[str] = "constant"
    value: str | None = None

    def encode(self, series: nw.Series[Any], unseen: str) -> np.ndarray:
        return np.zeros((len(series), 1))

    def summary(self) -> str:
        return "0, since every training row " + ("is missing" if self.value is None else f"has {self.value}")


@dataclass(frozen=True)
class Number(Column):
    """(x − centre) / scale. Booleans and durations (in days) too."""

    kind: ClassVar[str] = "number"
    was: str = "number"
    mean: float = 0.0
    centre: float = 0.0
    scale: float = 1.0
    gaps: bool = False
    decimal: str = ""
    thousands: str = ""

    @property
    def label(self) -> str:
        return self.was

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name}: missing"] if self.gaps else [])]

    def encode(self, series: nw.Series[Any], unseen: str) -> np.ndarray:
        if self.was == "number":
            series = read_text_column(series.alias(self.name), TextForm(self.decimal, self.thousands))
        _check_kind(self, series, ("number", "boolean") if self.was != "duration" else ("duration",))
        values = as_numbers(series)
        missing = np.isnan(values)
        if not self.gaps and unseen == "error":
            _check_gaps(self, missing)
        values = _scaled(np.where(missing, self.mean, values), self.centre, self.scale)
        return _beside(values, missing if self.gaps else None)

    def summary(self) -> str:
        plain = self.centre == 0 and self.scale == 1
        base = {"boolean": "0 or 1", "duration": "days"}.get(self.was, "as it is")
        text = base if plain else f"(x − {self.centre:.4g}) / {self.scale:.4g}"
        return text + _gap_words(self.gaps, self.mean)


@dataclass(frozen=True)
class Category(Column):
    """A column for each level but the reference, the most frequent one, which is zero in all of them."""

    kind: ClassVar[str] = "category"
    levels: tuple[str, ...] = ()
    reference: str | None = None
    gaps: bool = False

    @property
    def features(self) -> list[str]:
        named = [f"{self.name}={level}" for level in self.levels if level != self.reference]
        return [*named, *([f"{self.name}: missing"] if self.gaps else [])]

    def encode(self, series: nw.Series[Any], unseen: str) -> np.ndarray:
        text = as_text(series)
        missing = text.is_null().to_numpy()
        out = np.zeros((len(series), len(self.features)))
        known = missing.copy()
        i = 0
        for level in self.levels:
            hit = (text == level).fill_null(False).to_numpy()
            known |= hit
            if level != self.reference:
                out[:, i] = hit
                i += 1
        if self.gaps:
            out[:, i] = missing
        if unseen == "error":
            if not self.gaps:
                _check_gaps(self, missing)
            if not known.all():
                row = int(np.argmin(known))
                others = int((~known).sum()) - 1
                more = f" and {counted(others, 'row')} more" if others else ""
                raise DataError(
                    f"Column {self.name!r} has a category that was not in training: {text[row]!r} at row {row}{more} "
                    f"(counted from 0); known: {some(self.levels)}. "
                    'Fix it, fit with rows that have it, or ignore it: Table(unseen="ignore"), --unseen ignore.'
                )
        return out

    def summary(self) -> str:
        levels = some([level for level in self.levels if level != self.reference])
        text = f"1 if {levels}" + (f"; 0 for {self.reference}" if self.reference is not None else "")
        return text + ("; missing is a level of its own" if self.gaps else "")


@dataclass(frozen=True)
class Date(Column):
    """Days since the first training date, standardised, and the sine and cosine of each cycle that the rows cover."""

    kind: ClassVar[str] = "date"
    first: float = 0.0
    aware: bool = False
    mean: float = 0.0
    centre: float = 0.0
    scale: float = 1.0
    gaps: bool = False
    cycles: tuple[str, ...] = field(default=())
    form: str = ""

    @property
    def features(self) -> list[str]:
        waves = [f"{self.name}: {cycle} {wave}" for cycle in self.cycles for wave in ("sine", "cosine")]
        return [self.name, *waves, *([f"{self.name}: missing"] if self.gaps else [])]

    def encode(self, series: nw.Series[Any], unseen: str) -> np.ndarray:
        series = series.alias(self.name)
        series = read_text_column(series, TextForm(date=self.form)) if self.form else dates_of_text(series)
        _check_kind(self, series, ("date",))
        days, aware = as_days(series)
        missing = np.isnan(days)
        if aware != self.aware and not missing.all():
            raise DataError(
                f"Column {self.name!r} has dates {'with' if aware else 'without'} a time zone, "
                f"and training had them {'with' if self.aware else 'without'}; make them agree."
            )
        if not self.gaps and unseen == "error":
            _check_gaps(self, missing)
        elapsed = _scaled(np.where(missing, self.mean, days - self.first), self.centre, self.scale)
        waves = [np.where(missing, 0.0, wave) for c in self.cycles for wave in _waves(CYCLES[c].phase(days))]
        return _beside(elapsed, *waves, missing if self.gaps else None)

    def summary(self) -> str:
        text = f"days since {day_text(self.first)}"
        if self.cycles:
            text += f", sine and cosine of the {' and the '.join(self.cycles)}"
        return text + _gap_words(self.gaps, None)


def column_from_json(data: dict[str, Any]) -> Column:
    """The inverse of `Column.to_json`; a `SpecError` for values of another kind."""
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
    column = KINDS[fields.pop("kind")](**fields)
    check_kinds(column)
    for name in ("levels", "cycles"):
        words = getattr(column, name, ())
        if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
            raise SpecError(f"A column of the file has {name}={words!r}; they must be words.")
    if strange := set(getattr(column, "cycles", ())) - set(CYCLES):
        raise SpecError(f"A column of the file has cycles={sorted(strange)}; known are {', '.join(CYCLES)}.")
    return column


def describe(columns: Sequence[Column]) -> str:
    """What was learned of the columns of a table, one line per column."""
    width = max(len(column.name) for column in columns)
    kind = max(len(column.label) for column in columns)
    lines = [f"  {c.name:<{width}}  {c.label:<{kind}}  {c.summary()}" for c in columns]
    numbers = sum(len(column.features) for column in columns)
    become = verb(len(columns), "becomes", "become")
    return "\n".join([f"{counted(len(columns), 'column')} {become} {counted(numbers, 'number')}", *lines])


def kind_of(series: nw.Series[Any]) -> Kind:
    """What a column holds, by its type; `"empty"` where no value is there to tell."""
    dtype = series.dtype
    if series.is_null().all() or (dtype.is_float() and series.is_nan().fill_null(True).all()):
        return "empty"
    if dtype.is_numeric():
        return "number"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "category"
    if dtype in (nw.Date, nw.Datetime):
        return "date"
    if dtype == nw.Duration:
        return "duration"
    raise DataError(
        f"Column {series.name!r} has type {dtype}, which has no encoding; make it numbers, text, booleans or dates, "
        "or leave it out."
    )


def as_numbers(series: nw.Series[Any]) -> np.ndarray:
    """float64, missing as NaN; refuses infinity."""
    if series.dtype == nw.Duration:
        microseconds = series.dt.total_microseconds().cast(nw.Float64).to_numpy()
        return np.asarray(microseconds, dtype=np.float64) / DAY
    if series.is_null().all():
        return np.full(len(series), np.nan)
    values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"Column {series.name!r} has an infinite value ({values[row]} at row {row}, counted from 0); "
            "fix it, or make it missing."
        )
    return values


def as_text(series: nw.Series[Any]) -> nw.Series[Any]:
    """Categories as text; numbers in their shortest form, so that 1 and 1.0 are one level."""
    if not series.dtype.is_float():
        return series.cast(nw.String)
    import polars as pl  # not before it is needed: to describe columns takes no library of tables

    labels = [None if math.isnan(value) else f"{value:.15g}" for value in as_numbers(series)]
    return nw.from_native(pl.Series(series.name, labels, dtype=pl.String), series_only=True)


def _scaled(values: np.ndarray, centre: float, scale: float) -> np.ndarray:
    """(x − centre) / scale, and 0 where the training rows did not vary (scale 0)."""
    return (values - centre) / scale if scale else np.zeros_like(values)


def _beside(*parts: np.ndarray | None) -> np.ndarray:
    return np.column_stack([part for part in parts if part is not None])


def _waves(phase: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sin(2 * math.pi * phase), np.cos(2 * math.pi * phase)


def _gap_words(gaps: bool, mean: float | None) -> str:
    value = "the mean" if mean is None else f"the mean, {mean:.4g}"
    return f"; missing: {value}, and 1 in a column of its own" if gaps else ""


def _check_kind(column: Column, series: nw.Series[Any], allowed: tuple[str, ...]) -> None:
    kind = kind_of(series)
    if kind not in (*allowed, "empty"):
        shown = f" (for example {series.drop_nulls()[0]!r})" if kind == "category" else ""
        raise DataError(f"Column {column.name!r} was {_A[allowed[0]]} in training and is {_A[kind]} now{shown}.")


def _check_gaps(column: Column, missing: np.ndarray) -> None:
    if missing.any():
        row, more = int(np.argmax(missing)), int(missing.sum()) - 1
        rows = f"row {row}" + (f" and {more} more" if more else "")
        raise DataError(
            f"Column {column.name!r} has a missing value ({rows}, counted from 0) and had none in training; fill it, "
            'fit on rows with such gaps, or take the mean for it: Table(unseen="ignore"), --unseen ignore.'
        )


_A = {
    "number": "a number",
    "boolean": "a boolean",
    "category": "text",
    "date": "a date",
    "duration": "a duration",
}
