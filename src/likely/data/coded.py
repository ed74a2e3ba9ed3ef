"""Columns of a table as numbers and back: a number as it is, text as its position among the levels, a date in days.

    red, blue, red, –   →   1, 0, 1, NaN   →   red, blue, red, –
    2026-03-02, 2026-03-05   →   0, 3   →   2026-03-02, 2026-03-05        days since the first of the training rows

What a model of the rows themselves needs: unlike the encodings of `data.columns`, each column stays one number. New
rows have the types of the training rows, whatever their values: a column of integers is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from ..core.declared import NUMBERS, TEXTS
from ..core.draws import Form
from ..core.errors import DataError, ModelFileError
from .columns import as_numbers, as_text, kind_of
from .dates import DAY, as_days
from .frame import some
from .text_values import TextForm, dates_of_text, read_text_column, read_written

__all__ = ["Coded", "coded_from_json", "table_of"]

INTEGERS = tuple(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
DATES = {"Date": pl.Date(), "Datetime": pl.Datetime("us"), "Datetime UTC": pl.Datetime("us", "UTC")}
"""Dates by the names that files have for them; one that knows its time zone comes back in UTC."""
TYPES = {
    "number": (*INTEGERS, "Float32", "Float64", *DATES),
    "boolean": ("Boolean",),
    "category": ("String", "Categorical"),
}
"""The types that columns of each kind may have had, as polars names them."""


@dataclass(frozen=True)
class Coded:
    """How one column becomes a number and back: as it is, or as the position of its text among the levels."""

    name: str
    kind: Literal["number", "boolean", "category"]
    levels: tuple[str, ...] = ()
    dtype: str = ""
    """The type of the training column; where none is known, the widest one of its kind."""
    first: float = 0.0
    """The first day of a column of dates, since 1970: later ones count from it, so that few digits hold them."""

    @staticmethod
    def of(series: nw.Series[Any]) -> Coded:
        """How the column of these training rows is coded."""
        series, _ = read_written(series)
        kind = kind_of(series)
        if kind == "empty":
            raise DataError(f"Column {series.name!r} has no value in any row; leave it out.")
        if kind == "duration":
            raise DataError(f"Column {series.name!r} holds durations; leave it out (--ignore), or give it in days.")
        if kind == "date":
            days, aware = as_days(series)
            dtype = "Date" if series.dtype == nw.Date else "Datetime UTC" if aware else "Datetime"
            return Coded(str(series.name), "number", dtype=dtype, first=float(np.floor(np.nanmin(days))))
        if kind == "category":
            dtype = "String" if series.dtype == nw.String else "Categorical"
            levels = tuple(sorted(set(as_text(series).drop_nulls().to_list())))
            return Coded(str(series.name), "category", levels, dtype)
        if kind == "boolean":
            return Coded(str(series.name), "boolean", dtype="Boolean")
        dtype = type(series.dtype).__name__
        return Coded(str(series.name), "number", dtype=dtype if dtype in TYPES["number"] else "Float64")

    def encode(self, series: nw.Series[Any]) -> np.ndarray:
        """Numbers; NaN where the table has a gap."""
        if self.kind != "category":
            dates = self.dtype in DATES
            if series.dtype == nw.String and self.kind == "number":
                series = dates_of_text(series) if dates else read_text_column(series, TextForm())
            kind = kind_of(series)
            if kind not in (("date", "empty") if dates else ("number", "boolean", "empty")):
                had = "dates" if dates else "numbers"
                raise DataError(f"Column {self.name!r} holds {kind} values; training had {had} there.")
            if kind == "empty":
                return np.full(len(series), np.nan)
            return as_days(series)[0] - self.first if dates else as_numbers(series)
        place = {level: float(code) for code, level in enumerate(self.levels)}
        texts = as_text(series)
        gaps = texts.is_null().to_list()  # pandas gives NaN where others give None
        codes = np.array([np.nan if gap else place.get(text, -1.0) for text, gap in zip(texts, gaps, strict=True)])
        if (codes == -1).any():
            row = int(np.argmax(codes == -1))
            raise DataError(
                f"Column {self.name!r} has {texts[row]!r} at row {row}, which training did not show; "
                f"known: {some(map(repr, self.levels))}."
            )
        return codes

    def decode(self, values: np.ndarray, *, means: bool = False) -> pl.Series:
        """The column of a table that these numbers stand for, in the type of the training column.

        `means` says that some are means, which integers cannot hold: then they are floats.

        >>> Coded("age", "number", dtype="Int64").decode(np.array([3.0, 4.2])).to_list()
        [3, 4]
        """
        if self.kind == "category":
            texts = [None if np.isnan(v) else self.levels[int(v)] for v in values]
            return pl.Series(self.name, texts, dtype=getattr(pl, self.dtype or "String"))
        if self.kind == "boolean":
            return pl.Series(self.name, [None if np.isnan(v) else v > 0.5 for v in values], dtype=pl.Boolean)
        series = pl.Series(self.name, values, dtype=pl.Float64)
        if self.dtype in DATES:
            return _dated(series + self.first, self.dtype)
        if self.dtype in INTEGERS:
            return series if means else _rounded(series, self.dtype)
        return series.cast(getattr(pl, self.dtype or "Float64"))

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {**asdict(self), "levels": list(self.levels)}


def coded_from_json(columns: Sequence[Any]) -> tuple[Coded, ...]:
    """The columns that a file describes; a `ModelFileError` for what describes none."""
    for column in columns:
        if column["kind"] not in ("number", "boolean", "category"):
            raise ModelFileError(f"The file has a column of an unknown kind {column['kind']!r}.")
        if column.get("dtype", "") not in ("", *TYPES[column["kind"]]):
            raise ModelFileError(f"The file has a column of an unknown type {column['dtype']!r}.")
    names = [column["name"] for column in columns]
    if not TEXTS.holds(names) or len(set(names)) < len(names):
        raise ModelFileError(f"The file has columns without names of their own: {names!r}.")
    if not all(TEXTS.holds(column["levels"]) for column in columns):
        raise ModelFileError("The file has levels of a column that are not a list of words.")
    starts = [column.get("first", 0.0) for column in columns]
    if not NUMBERS.holds(starts):
        raise ModelFileError(f"The file has dates that count from {starts!r}.")
    return tuple(
        Coded(c["name"], c["kind"], tuple(c["levels"]), c.get("dtype", ""), first)
        for c, first in zip(columns, starts, strict=True)
    )


def table_of(columns: Sequence[Coded], values: np.ndarray, form: Form, filled: np.ndarray | None = None) -> Any:
    """Rows (n, columns) as a table of polars or pandas; `filled` (n, columns) says which values are means.

    >>> table_of([Coded("size", "number", dtype="Float64")], np.array([[1.0], [2.0]]), "polars")["size"].to_list()
    [1.0, 2.0]
    """
    means = [filled is not None and bool(filled[:, index].any()) for index in range(len(columns))]
    parts = zip(columns, values.T, means, strict=True)
    table = pl.DataFrame([column.decode(own, means=some) for column, own, some in parts])
    if form == "polars":
        return table
    import pandas as pd

    own = {c.name: pd.Categorical(table[c.name].to_list(), c.levels) for c in columns if c.dtype == "Categorical"}
    plain = {name: series.to_list() for name, series in table.to_dict().items()}
    narrow = {name: str(kind).lower() for name, kind in table.schema.items() if kind.is_numeric()}
    gone = {name for name in narrow if table[name].null_count()}
    frame = pd.DataFrame(plain | own, columns=table.columns)
    return frame.astype({name: kind for name, kind in narrow.items() if name not in gone})


def _rounded(series: pl.Series, dtype: str) -> pl.Series:
    """Integers of a type, no smaller and no larger than it holds."""
    bounds = np.iinfo(dtype.lower())
    highest = float(bounds.max) if bounds.bits < 64 else np.nextafter(float(bounds.max), 0)
    return series.fill_nan(None).round().clip(float(bounds.min), highest).cast(getattr(pl, dtype))


def _dated(days: pl.Series, dtype: str) -> pl.Series:
    """Dates of days since 1970, within the years that calendars write."""
    lowest, highest = (float(np.datetime64(day, "D").astype(int)) for day in ("0001-01-01", "9999-12-31"))
    within = days.fill_nan(None).clip(lowest, highest)
    count = within.round().cast(pl.Int32) if dtype == "Date" else (within * DAY).round().cast(pl.Int64)
    return count.cast(DATES[dtype])
