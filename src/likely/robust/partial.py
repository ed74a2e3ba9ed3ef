"""Rows of which only some numbers may be changed: the columns of a table that are numbers, and not labels or counts.

    scores(x) = scores of the whole row:   h with (x − centre) / scale in the places that may be changed

Labels, counts, categories, dates and text have no small changes: they stay what they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeGuard

import narwhals as nw
import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from ..data.columns import Column, Number, as_numbers
from ..data.frame import as_frame, column_of, some
from ..data.table import Table
from ..models import TableModel
from ..models.scored import Scored
from ..models.supervised.base import as_array
from ..optim.bounds import Bounds, bounds_of
from .forms import changed_rows
from .victim import Victim

__all__ = ["ColumnsVictim", "TableVictim"]


class _Partial(Victim):
    """An inner victim of whole rows. Targets are row numbers, by which the held numbers of a row are known."""

    whole: Tensor
    """Whole rows, as the inner victim has them."""
    own: Tensor
    """Their targets, as the inner victim has them."""
    places: Tensor
    """Which numbers of a whole row may be changed."""
    ends: Tensor
    """The least and the largest that each of them may become."""

    def __init__(self, model: Any, inner: Victim) -> None:
        self.model, self.inner = model, inner

    @abstractmethod
    def inner_rows(self, X: Any) -> Any:
        """X as the inner victim reads it."""

    def encoded(self, x: Tensor) -> Tensor:
        """What may be changed, as the inner victim has it."""
        return x

    def open(self, X: Any) -> None:
        """Read whole rows."""
        self.inner.purpose = self.purpose
        self.whole = self.inner.read(self.inner_rows(X))
        self.rows, self.work, self.linear = self.inner.rows, self.inner.work, self.inner.linear

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        self.own = self.inner.targets(self.whole, self.inner_rows(X), y)
        return torch.arange(len(x))

    def evaluate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        loss, margin = self.inner.evaluate(self._filled(x, y), self.own[y])
        return loss.to(x), margin.to(x)  # as attacks keep them, though a network has fewer digits than a table

    def margins(self, x: Tensor, y: Tensor) -> Tensor:
        return self.inner.margins(self._filled(x, y), self.own[y]).to(x)

    def limits(self, bounds: Bounds) -> Bounds:
        low, high = (None if bool(end.isinf().all()) else end for end in self.ends)
        if low is not None and bounds.low is not None:
            low = torch.maximum(low, bounds.low)
        if high is not None and bounds.high is not None:
            high = torch.minimum(high, bounds.high)
        return Bounds(bounds.low if low is None else low, bounds.high if high is None else high)

    def answers(self, X: Any) -> np.ndarray:
        return self.model.predict(X)

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        return self.inner.wrong(answers, self.own[y])

    def _filled(self, x: Tensor, rows: Tensor) -> Tensor:
        return self.whole[rows].index_copy(1, self.places, self.encoded(x).to(self.whole))


class ColumnsVictim(_Partial):
    """A model of arrays of which some columns are labels or counts, or have ends."""

    model: Scored

    def inner_rows(self, X: Any) -> Any:
        return X

    def read(self, X: Any) -> Tensor:
        self.open(X)
        ends = ends_of(self.model, self.whole.shape[1])
        self.places = (~ends[0].isnan()).nonzero().ravel()
        self.ends = ends[:, self.places]
        if not len(self.places):
            raise DataError(
                f"Every column of the {type(self.model).__name__} is of labels or counts, which have no small changes; "
                f"{self.purpose} take numbers."
            )
        return self.whole[:, self.places]

    def bounds(self, bounds: Any, x: Tensor) -> Bounds:
        asked = bounds_of(bounds, self.whole)
        return Bounds(*(end if end is None or not end.ndim else end[self.places] for end in asked))

    def changed(self, X: Any, x: Tensor, point: Tensor, bounds: Any) -> Any:
        return changed_rows(X, self.whole, self.whole.index_copy(1, self.places, point), bounds)


class TableVictim(_Partial):
    """A model of tables: the columns of numbers may be changed, in their own units."""

    model: TableModel

    def read(self, X: Any) -> Tensor:
        table = self.model.table_
        if not isinstance(table, Table):
            raise DataError(f"The TableModel reads texts, which have no small changes; {self.purpose} take numbers.")
        self.open(X)
        frame, ends = as_frame(X), ends_of(self.model.model_, self.whole.shape[1])
        columns: list[Number] = []
        places, first = [], 0
        for column in table.columns_:
            if _varies(column, frame[column.name]) and not ends[0, first].isnan():
                columns.append(column)
                places.append(first)
            first += len(column.features)
        if not columns:
            names = some(repr(column.name) for column in table.columns_)
            raise DataError(
                f"No column of the table ({names}) holds numbers with small changes, as categories, dates and text "
                f"have none; {self.purpose} take numbers."
            )
        self.names, self.places = [column.name for column in columns], torch.tensor(places)
        self.centre, self.scale = torch.tensor([[c.centre, c.scale] for c in columns], dtype=torch.float64).T
        self.ends = self.centre + self.scale * ends[:, self.places]
        values = np.column_stack([as_numbers(column_of(frame, name)) for name in self.names])
        for name, gaps in zip(self.names, np.isnan(values).T, strict=True):
            if gaps.any():
                raise DataError(
                    f"Column {name!r} has a missing value at row {int(gaps.argmax())}, which has no small changes; "
                    "leave out such rows, or fill them."
                )
        return torch.from_numpy(values)

    def inner_rows(self, X: Any) -> np.ndarray:
        return self.model.table_.transform(X)

    def encoded(self, x: Tensor) -> Tensor:
        return (x - self.centre) / self.scale

    def bounds(self, bounds: Any, x: Tensor) -> Bounds:
        if isinstance(bounds, tuple | list) and len(bounds) == 2:
            bounds = tuple(self._end(end, side) for end, side in zip(bounds, (-np.inf, np.inf), strict=True))
        return bounds_of(bounds, x)

    def _end(self, end: Any, side: float) -> Any:
        """The ends of columns by their names as an array."""
        if not isinstance(end, Mapping):
            return end
        unknown = [name for name in end if name not in self.names]
        if unknown:
            raise DataError(
                f"bounds has an end for {unknown[0]!r}; the columns that may be changed are {some(self.names)}."
            )
        return np.array([end.get(name, side) for name in self.names], dtype=float)

    def changed(self, X: Any, x: Tensor, point: Tensor, bounds: Any) -> Any:
        columns = dict(zip(self.names, as_array(point.T), strict=True))
        if isinstance(X, Mapping):
            return {name: columns.get(str(name), values) for name, values in X.items()}
        frame = as_frame(X)
        space = nw.get_native_namespace(frame)
        made = frame.with_columns(*(nw.new_series(n, v.copy(), backend=space) for n, v in columns.items()))
        return made if isinstance(X, nw.DataFrame) else made.to_native()


def ends_of(model: Any, width: int) -> Tensor:
    """The least and the largest number of each column of a model's rows, (2, width); NaN where none may be changed.

    >>> ends_of(torch.nn.Linear(1, 2), 1)
    tensor([[-inf],
            [inf]], dtype=torch.float64)
    """
    ends = model._ends if isinstance(model, Scored) else None
    return torch.tensor([[-np.inf], [np.inf]], dtype=torch.float64).expand(2, width) if ends is None else ends


def _varies(column: Column, series: nw.Series[Any]) -> TypeGuard[Number]:
    """Whether a column of a table was of different numbers in training, and is of numbers here."""
    return isinstance(column, Number) and column.was == "number" and column.scale != 0 and series.dtype.is_numeric()
