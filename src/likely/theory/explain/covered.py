"""Rows with a part covered, of an array of any shape or of a frame: what occlusion asks a model about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from ...core.errors import DataError
from .columns import Columns

__all__ = ["Covered", "covered_of"]


class Covered:
    """Rows, and what they are where a window of them is covered."""

    rows: Any
    """As the model takes them."""
    sides: tuple[int, ...]
    """The lengths of what windows slide over: the columns of a table, or the places of an image in all channels."""
    size: int
    """How many values the rows have."""
    table: bool
    """Whether rows have columns, and not places."""
    numbers: np.ndarray | None
    names: tuple[str, ...] | None = None

    def where(self, starts: Sequence[tuple[int, ...]], size: tuple[int, ...]) -> Any:
        """All rows with the first window covered, then all with the second …"""
        raise NotImplementedError


class _Array(Covered):
    """Rows (n, …) of numbers. In images all channels of a place are covered together."""

    def __init__(self, X: Any, baseline: Any) -> None:
        try:
            rows = np.array(X, dtype=None if isinstance(X, np.ndarray) else float)
        except (TypeError, ValueError) as error:
            raise DataError(f"X is not an array of numbers (n, …): {error}.") from error
        if rows.ndim < 2 or not len(rows) or rows.dtype.kind not in "fiub":
            raise DataError(f"X has shape {rows.shape} of {rows.dtype}; rows (n, …) of numbers are needed.")
        self.rows = rows if rows.dtype.kind == "f" else rows.astype(float)
        self.numbers = self.rows.astype(float)
        self.axes = (1,) if rows.ndim == 2 else tuple(range(2, rows.ndim))
        self.sides, self.size = tuple(rows.shape[axis] for axis in self.axes), rows.size
        self.table = rows.ndim == 2
        try:
            self.cover = np.broadcast_to(np.asarray(baseline, dtype=self.rows.dtype), rows.shape)
        except (TypeError, ValueError) as error:
            raise DataError(f"baseline must be a number, a row {rows.shape[1:]} or rows {rows.shape}.") from error

    def where(self, starts: Sequence[tuple[int, ...]], size: tuple[int, ...]) -> np.ndarray:
        covered = np.repeat(self.rows[None], len(starts), 0)
        for copy, start in zip(covered, starts, strict=True):
            window = (slice(None),) * self.axes[0] + tuple(slice(s, s + n) for s, n in zip(start, size, strict=True))
            copy[window] = self.cover[window]
        return covered.reshape(-1, *self.rows.shape[1:])


class _Frame(Covered):
    """Rows of a frame, whose columns are covered as they are: numbers by numbers, text by text."""

    def __init__(self, X: Any, baseline: Any) -> None:
        table = Columns.of(X, "X")
        assert table.names is not None
        self.rows, self.names, self.sides = table.rows, table.names, (table.width,)
        self.numbers, self.count, self.size, self.table = table.numbers(), len(table), len(table) * table.width, True
        own, cover = _same_kinds(table, baseline)
        self.cover_rows = len(cover)
        self.both = own.before(cover)

    def where(self, starts: Sequence[tuple[int, ...]], size: tuple[int, ...]) -> Any:
        own = np.tile(np.arange(self.count), len(starts))
        index = np.repeat(own[:, None], self.sides[0], 1)
        behind = self.count + own % self.cover_rows
        for block, (start,) in enumerate(starts):
            rows = slice(block * self.count, (block + 1) * self.count)
            index[rows, start : start + size[0]] = behind[rows, None]
        return self.both.mix(index)


def covered_of(X: Any, baseline: Any) -> Covered:
    """Rows of X to be covered by a baseline: one number, one row, or a row for each.

    >>> rows = covered_of({"area": [50.0, 80.0], "city": ["Oslo", "Bergen"]}, {"area": 60.0, "city": "Oslo"})
    >>> rows.where([(0,), (1,)], (1,))["area"].to_list()
    [60.0, 60.0, 50.0, 80.0]
    """
    return _Frame(X, baseline) if hasattr(X, "columns") or isinstance(X, Mapping) else _Array(X, baseline)


def _same_kinds(table: Columns, baseline: Any) -> tuple[Columns, Columns]:
    """Two frames of the same columns, each of one kind in both."""
    import narwhals as nw

    frame = nw.from_native(table.rows, eager_only=True)
    values = _by_column(frame, baseline)
    lengths = {len(own) for own in values.values()}
    if lengths not in ({1}, {len(frame)}):
        raise DataError(f"baseline has {max(lengths)} rows; one is needed, or one for each of {len(frame)}.")
    own, cover = [], []
    for name, given in values.items():
        column = frame[name]
        if column.dtype.is_numeric() and not _fits(given, column.dtype):
            column = column.cast(nw.Float64)
        try:
            behind = nw.new_series(name, given, column.dtype, backend=nw.get_native_namespace(frame))
        except Exception as error:  # what the library of the frame raises
            raise DataError(f"baseline has {given[0]!r} for column {name!r}, which holds {column.dtype}.") from error
        own.append(column)
        cover.append(behind)
    return tuple(Columns(nw.to_native(_joined(parts)), table.names) for parts in (own, cover))  # type: ignore[return-value]


def _joined(columns: list[Any]) -> Any:
    import narwhals as nw

    frames = [nw.maybe_reset_index(column.to_frame()) for column in columns]
    return nw.concat(frames, how="horizontal")


def _fits(values: list[Any], dtype: Any) -> bool:
    """Whether numbers stay what they are in a column of this kind; of what is no number, the column says so itself."""
    numbers = [value for value in values if isinstance(value, Real)]
    return dtype.is_float() or all(float(value).is_integer() for value in numbers)


def _by_column(frame: Any, baseline: Any) -> dict[str, list[Any]]:
    """What covers each column: a list of one value, or of as many as there are rows."""
    if isinstance(baseline, Mapping) or hasattr(baseline, "columns"):
        given = {
            str(name): baseline[name] for name in (baseline if isinstance(baseline, Mapping) else baseline.columns)
        }
    elif hasattr(baseline, "index") and hasattr(baseline, "items"):  # a pandas Series, such as the means of columns
        given = {str(name): value for name, value in baseline.items()}
    else:
        return _numbers_by_column(frame, baseline)
    missing = [name for name in frame.columns if name not in given]
    if missing:
        raise DataError(f"baseline has no column {missing[0]!r}, which X has.")
    listed = {
        name: [value] if isinstance(value, str) or not np.ndim(value) else list(value) for name, value in given.items()
    }
    return {name: listed[name] for name in frame.columns}


def _numbers_by_column(frame: Any, baseline: Any) -> dict[str, list[Any]]:
    import narwhals as nw

    kinds = frame.schema
    words = [name for name, kind in kinds.items() if not kind.is_numeric() and kind != nw.Boolean]
    if words:
        raise DataError(
            f"X has columns that are not numbers ({', '.join(map(repr, words[:4]))}), and the baseline is "
            f"{baseline!r}; give a value for each column: a dict, or a frame of one row."
        )
    try:
        values = np.asarray(baseline, dtype=float)
        rows = np.broadcast_to(values, (len(frame) if values.ndim > 1 else 1, len(kinds)))
    except (TypeError, ValueError) as error:
        raise DataError(f"baseline must be a number, a row of {len(kinds)} columns, a dict or a frame.") from error
    return {
        name: [bool(value) if kind == nw.Boolean else _number(value, kind) for value in rows[:, j].tolist()]
        for j, (name, kind) in enumerate(kinds.items())
    }


def _number(value: float, kind: Any) -> float:
    return int(value) if kind.is_integer() and value.is_integer() else value
