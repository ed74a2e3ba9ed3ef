"""Rows of a table whose columns can be exchanged one by one: what Shapley values and occlusion ask a model about."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import DataError

__all__ = ["Columns"]


class Columns:
    """Rows whose columns can be mixed: of an array, or of a frame of any kind.

    >>> table = Columns.of({"area": [50.0, 80.0], "city": ["Oslo", "Bergen"]}, "X")
    >>> table.mix(np.array([[0, 1]]))["city"].to_list()
    ['Bergen']
    """

    def __init__(self, rows: Any, names: tuple[str, ...] | None) -> None:
        self.rows, self.names = rows, names

    @classmethod
    def of(cls, X: Any, name: str) -> Columns:
        """Rows at the door: a frame, a dict of columns, or an array (n, columns) of numbers."""
        if hasattr(X, "columns") or isinstance(X, dict):
            import narwhals as nw

            from ...data.frame import as_frame

            frame = as_frame(X, name)
            if not len(frame):
                raise DataError(f"{name} has no rows.")
            return cls(nw.to_native(frame), tuple(frame.columns))
        rows = np.asarray(X)
        if rows.ndim != 2 or not len(rows) or rows.dtype.kind not in "fiub":
            raise DataError(
                f"{name} has shape {rows.shape} of {rows.dtype}; a table (n, columns) of numbers is needed."
            )
        return cls(rows if rows.dtype.kind == "f" else rows.astype(float), None)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names) if self.names is not None else self.rows.shape[1]

    def take(self, index: np.ndarray) -> Columns:
        """Some of the rows."""
        if self.names is None:
            return Columns(self.rows[index], None)
        return Columns(self.mix(np.repeat(index[:, None], self.width, 1)), self.names)

    def before(self, others: Columns) -> Columns:
        """These rows with others behind them."""
        if self.names is None:
            return Columns(np.concatenate([self.rows, others.rows]), None)
        import narwhals as nw

        both = nw.concat([nw.from_native(part.rows, eager_only=True) for part in (self, others)])
        return Columns(nw.to_native(both), self.names)

    def mix(self, index: np.ndarray) -> Any:
        """Rows whose column j comes from row index[:, j]."""
        if self.names is None:
            return np.take_along_axis(self.rows, index, 0)
        import narwhals as nw

        frame = nw.from_native(self.rows, eager_only=True)
        columns = [frame[index[:, j].tolist(), [name]] for j, name in enumerate(self.names)]
        return nw.to_native(nw.concat([nw.maybe_reset_index(column) for column in columns], how="horizontal"))

    def numbers(self) -> np.ndarray | None:
        """As an array, where all columns are numbers."""
        if self.names is None:
            return np.asarray(self.rows, dtype=float)
        import narwhals as nw

        frame = nw.from_native(self.rows, eager_only=True)
        if not all(dtype.is_numeric() for dtype in frame.schema.values()):
            return None
        return np.asarray(frame.to_numpy(), dtype=float)
