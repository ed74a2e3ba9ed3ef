"""Columns of a table as numbers and back: a number as it is, text as its position among the levels.

    red, blue, red, –   →   1, 0, 1, NaN   →   red, blue, red, –

What a model of the rows themselves needs: unlike the encodings of `data.columns`, each column stays one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from ..core.declared import TEXTS
from ..core.errors import DataError, ModelFileError
from .columns import as_numbers, as_text, kind_of
from .frame import some

__all__ = ["Coded", "coded_from_json"]


@dataclass(frozen=True)
class Coded:
    """How one column becomes a number and back: as it is, or as the position of its text among the levels."""

    name: str
    kind: Literal["number", "boolean", "category"]
    levels: tuple[str, ...] = ()

    @staticmethod
    def of(series: nw.Series[Any]) -> Coded:
        """How the column of these training rows is coded."""
        kind = kind_of(series)
        if kind == "empty":
            raise DataError(f"Column {series.name!r} has no value in any row; leave it out.")
        if kind in ("date", "duration"):
            raise DataError(
                f"Column {series.name!r} holds {kind}s, which are not numbers; leave it out (--ignore), or convert it."
            )
        if kind == "category":
            return Coded(str(series.name), "category", tuple(sorted(set(as_text(series).drop_nulls().to_list()))))
        return Coded(str(series.name), "boolean" if kind == "boolean" else "number")

    def encode(self, series: nw.Series[Any]) -> np.ndarray:
        """Numbers; NaN where the table has a gap."""
        if self.kind != "category":
            kind = kind_of(series)
            if kind not in ("number", "boolean", "empty"):
                raise DataError(f"Column {self.name!r} holds {kind} values; training had numbers there.")
            return as_numbers(series) if kind != "empty" else np.full(len(series), np.nan)
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

    def decode(self, values: np.ndarray) -> pl.Series:
        """The column of a table that these numbers stand for."""
        if self.kind == "category":
            return pl.Series(self.name, [None if np.isnan(v) else self.levels[int(v)] for v in values], dtype=pl.String)
        whole = bool(np.isfinite(values).all()) and bool((values == np.round(values)).all())
        if self.kind == "boolean" and whole and set(values) <= {0.0, 1.0}:
            return pl.Series(self.name, values.astype(bool))
        return pl.Series(self.name, values.astype(np.int64) if whole and np.abs(values).max() < 2**53 else values)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {**asdict(self), "levels": list(self.levels)}


def coded_from_json(columns: Sequence[Any]) -> tuple[Coded, ...]:
    """The columns that a file describes; a `ModelFileError` for what describes none."""
    for column in columns:
        if column["kind"] not in ("number", "boolean", "category"):
            raise ModelFileError(f"The file has a column of an unknown kind {column['kind']!r}.")
    names = [column["name"] for column in columns]
    if not TEXTS.holds(names) or len(set(names)) < len(names):
        raise ModelFileError(f"The file has columns without names of their own: {names!r}.")
    if not all(TEXTS.holds(column["levels"]) for column in columns):
        raise ModelFileError("The file has levels of a column that are not a list of words.")
    return tuple(Coded(column["name"], column["kind"], tuple(column["levels"])) for column in columns)
