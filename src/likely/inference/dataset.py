"""The data of a fit: rows x with targets y and weights, given out as batches. Held once, never copied whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..data.rows import Inputs, Ragged, Rows, row_size

__all__ = ["Batch", "Dataset"]

BLOCK = 1 << 22
"""Numbers in one block of a pass over all rows: small enough to stay near the cache, large enough for BLAS."""


class Batch(NamedTuple):
    """Some rows: x (b, …), y (b, *positions, *event), and weights (b, *positions) or None if all are 1.

    A density has rows x alone: then y is None.

    x may be `Rows` instead. Where those have a target at each position, y and the weights hold all positions of all
    rows, one row after the other, as η does.
    """

    x: Any
    y: Any
    weight: Tensor | None
    condition: Any = None
    """What a density is conditioned on, one entry per row; None if on nothing."""
    offsets: Tensor | None = None
    """Where the targets of each row start in y, (b + 1,), if rows have as many as they have positions."""


@dataclass(frozen=True)
class Dataset:
    """All rows, or those that `rows` names. x is cast to the dtype of the fit batch by batch, unless it is `integer`:

    tokens and categories, which the network takes as they are.
    """

    x: Inputs
    y: Tensor | Ragged | None
    weight: Tensor | Ragged | None
    dtype: torch.dtype
    positions: tuple[int, ...] = ()
    rows: Tensor | None = None
    condition: Inputs | None = None
    integer: bool = False
    whole: bool = False
    """Whether the targets of a row are one, coupled: then weights are of rows, and a missing target is NaN in y."""

    def __len__(self) -> int:
        return len(self.x) if self.rows is None else len(self.rows)

    @property
    def plain(self) -> bool:
        """Whether every part is a tensor with one entry per row."""
        return all(part is None or isinstance(part, Tensor) for part in (self.x, self.y, self.weight, self.condition))

    def batch(self, index: Tensor | slice) -> Batch:
        """The rows with these indices (any shape of index tensor), or a slice of them."""
        if self.rows is not None:
            index = self.rows[index]
        x = _take(self.x, index)
        x = x if self.integer else x.to(self.dtype)
        y, weight = (None if part is None else _take(part, index) for part in (self.y, self.weight))
        offsets = y.offsets if self.whole and isinstance(y, Ragged) else None
        condition = None if self.condition is None else _take(self.condition, index).to(self.dtype)
        return Batch(x, None if y is None else _flat(y), None if weight is None else _flat(weight), condition, offsets)

    def to(self, dtype: torch.dtype) -> Dataset:
        """The same rows, for a fit in this dtype: targets and weights are cast now, x batch by batch."""
        y, weight = (None if part is None else part.to(dtype) for part in (self.y, self.weight))
        return replace(self, y=y, weight=weight, dtype=dtype)

    def subset(self, rows: Tensor) -> Dataset:
        """Only these rows; nothing is copied."""
        chosen = rows if self.rows is None else self.rows[rows]
        return replace(self, rows=chosen)

    def blocks(self, part: slice | None = None, rows: int | None = None) -> Iterator[Batch]:
        """All rows (or a contiguous part) in order, in blocks of bounded size and of at most so many rows."""
        start, stop, _ = (part or slice(None)).indices(len(self))
        step = max(1, min(BLOCK // row_size(self.x), rows or BLOCK))
        for first in range(start, stop, step):
            yield self.batch(slice(first, min(first + step, stop)))

    def total_weight(self) -> float:
        """Σ w over the rows and positions: the number of targets where there are no weights."""
        if self.whole and self.weight is None:
            return float(len(self))
        if self.weight is None and not isinstance(self.y, Ragged):
            return float(len(self) * math.prod(self.positions))
        everything = slice(None) if self.rows is None else self.rows
        if self.weight is None:
            return float(len(_flat(_take(self.y, everything))))
        return float(_flat(_take(self.weight, everything)).double().sum())

    def order(self, generator: torch.Generator, batch_size: int) -> Tensor:
        """A new order of the rows, in which batches of so many are to be taken."""
        order = torch.randperm(len(self), generator=generator)
        if not isinstance(self.x, Rows) or batch_size >= len(self):
            return order
        x = self.x if self.rows is None else self.x[self.rows]
        return x.arranged(order, batch_size, generator)


def _flat(values: Tensor | Ragged) -> Tensor:
    return values.values if isinstance(values, Ragged) else values


def _take(rows: Any, index: Tensor | slice) -> Any:
    """`rows[index]`; one gather for an index of any shape is several times faster than advanced indexing."""
    if isinstance(index, slice) or isinstance(rows, Rows):
        return rows[index]
    if index.ndim == 1:
        return rows.index_select(0, index)
    return rows.index_select(0, index.reshape(-1)).view(*index.shape, *rows.shape[1:])
