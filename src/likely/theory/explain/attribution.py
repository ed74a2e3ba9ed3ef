"""Attribution: how much each input of each row counts for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import DataError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Attribution"]


@dataclass(frozen=True)
class Attribution:
    """What each input counts for an answer, row by row.

    >>> shares = Attribution(np.array([[1.0, -2.0]]), "shapley", "mean", None, np.array([3.0]), np.array([4.0]))
    >>> shares.gap
    array([0.])
    >>> print(shares)
    shapley: 1 row of 2 columns; they sum to mean − mean at the baseline, to 0
    >>> shares.to_frame(["a", "b"]).columns
    ['row', 'input', 'value', 'attribution']
    """

    values: np.ndarray
    """One number for each input, (n, …) in the shape of X; of images by place alone, (n, 1, height, width)."""
    method: str
    of: str
    """What is explained: "log_odds", "probability", "mean" or "output"."""
    target: np.ndarray | None
    """The class (or the output) of each row that is explained; None where there is one number."""
    output: np.ndarray
    """f(x) of each row."""
    baseline: np.ndarray | None = None
    """f at the baseline, where there is one that the values add up from."""
    standard_error: np.ndarray | None = None
    """Of each value, where they are estimates."""
    X: np.ndarray | None = None
    """The rows that are explained, where they are numbers."""
    names: tuple[str, ...] | None = None
    """The columns of a table."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def gap(self) -> np.ndarray | None:
        """Σ values − (f(x) − f(baseline)) of each row: 0 where nothing is lost; None without a baseline."""
        if self.baseline is None:
            return None
        return self.values.reshape(len(self), -1).sum(1) - (self.output - self.baseline)

    def importance(self) -> np.ndarray:
        """The mean size |value| of each input over all rows, in the shape of a row."""
        return np.abs(self.values).mean(0)

    def to_frame(self, names: Sequence[str] | None = None) -> pl.DataFrame:
        """A table with a line for each row and column of a table: its value and its attribution."""
        import polars as pl

        if self.values.ndim != 2:
            raise DataError(f"The attributions are (n, …) = {self.values.shape}; only those of tables go to a frame.")
        rows, width = self.values.shape
        names = self.column_names(names)
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(rows), width),
            "input": list(names) * rows,
            "value": np.full(rows * width, np.nan) if self.X is None else self.X.ravel(),
            "attribution": self.values.ravel(),
        }
        if self.standard_error is not None:
            columns["standard_error"] = self.standard_error.ravel()
        return pl.DataFrame(columns)

    def column_names(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Those given, those of the table, or x0, x1 …"""
        width = self.values.shape[1]
        chosen = tuple(names) if names is not None else self.names or tuple(f"x{j}" for j in range(width))
        if len(chosen) != width:
            raise DataError(f"names has {len(chosen)} entries; there are {width} columns.")
        return chosen

    def __str__(self) -> str:
        rows = f"{len(self)} row{'s' if len(self) != 1 else ''}"
        shape = f"{self.values.shape[1]} columns" if self.values.ndim == 2 else f"shape {self.values.shape[1:]}"
        words = f"{self.method}: {rows} of {shape}"
        if self.gap is None:
            return words
        return f"{words}; they sum to {self.of} − {self.of} at the baseline, to {np.abs(self.gap).max():.1g}"
