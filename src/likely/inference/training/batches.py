"""The rows of each step: every epoch is a new order of all rows, cut into batches; or every batch is drawn anew.

Without replacement an epoch visits each row once. With replacement the noise of a step remembers nothing of the steps
before, as the theory of some samplers needs. Members of an ensemble have orders of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...core import distributed
from ..dataset import Batch, Dataset

__all__ = ["Batches"]

AHEAD = 1 << 18
"""Numbers of x to gather at once, for several steps: a gather costs as much as the products of a small step."""


class Batches:
    """`take(data)` gives the rows of the next step, (b, …) or (members, b, …); they are a fraction `fraction` of all.

    >>> data = Dataset(torch.zeros(5, 1), torch.zeros(5), None, torch.float32)
    >>> batches = Batches(data, 2, [0])
    >>> [len(batches.take(data).x) for _ in range(batches.count)]
    [2, 2, 1]
    """

    def __init__(self, data: Dataset, size: int | None, seeds: list[int], *, replacement: bool = False) -> None:
        self.data, self.replacement = data, replacement
        self.size = min(size or len(data), len(data))
        self.rows = len(data)
        self.count = math.ceil(self.rows / self.size)
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._orders: Tensor | None = None
        self._at = 0
        self._waiting: list[Batch] = []  # gathered, but not taken yet
        self._alone = distributed.world() == 1
        self.fraction = 1.0
        self.whole = self.count == 1 and len(seeds) == 1 and self._alone and not replacement
        """Whether a batch is all rows, in whichever order, so that there is nothing to choose."""

    def take(self, data: Dataset) -> Batch:
        """This process's part of the next batch; `data` has the rows that are counted here, as training sees them."""
        if not self._waiting:
            self._waiting = self._gathered(data)
        if not self._waiting:
            return data.batch(self.next())
        self.fraction = min(self.size, self.rows - self._at * self.size) / self.rows
        self._at += 1
        return self._waiting.pop()

    def next(self) -> Tensor | slice:
        """This process's part of the next batch, as indices."""
        if self.whole:
            return slice(None)
        if self.replacement:
            drawn = [torch.randint(self.rows, (self.size,), generator=g) for g in self._generators]
            return self._own(self._stacked(drawn))
        order = self._order()
        first = self._at * self.size
        self._at += 1
        return self._own(order[..., first : first + self.size])

    def _gathered(self, data: Dataset) -> list[Batch]:
        """The batches that come next in this epoch, last one first; none where they are as well taken singly."""
        if self.whole or self.replacement or not self._alone or not data.plain:
            return []
        count = AHEAD // (self.size * len(self._generators) * max(1, math.prod(data.x.shape[1:])))
        if count < 2:
            return []
        order, first = self._order(), self._at * self.size
        rows = order[..., first : first + count * self.size]
        indices = rows.split(self.size, -1)
        together = data.batch(rows if rows.ndim == 1 else torch.cat([index.flatten() for index in indices]))
        columns = [[None] * len(indices) if part is None else _cut(part, indices) for part in together]
        return [Batch(*parts) for parts in zip(*columns, strict=True)][::-1]

    def _order(self) -> Tensor:
        """The rows of this epoch: a new order once all batches of the last one are taken."""
        if self._orders is None or self._at == self.count:
            self._orders, self._at = self._stacked([self.data.order(g, self.size) for g in self._generators]), 0
        return self._orders

    def _stacked(self, rows: list[Tensor]) -> Tensor:
        together = torch.stack(rows) if len(rows) > 1 else rows[0]
        return together.to(self.data.x.device)

    def _own(self, rows: Tensor) -> Tensor:
        self.fraction = rows.shape[-1] / self.rows
        return rows if self._alone else rows[..., distributed.shard(rows.shape[-1])]

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        generators = [generator.get_state() for generator in self._generators]
        return {"generators": generators, "orders": self._orders, "at": self._at}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        for generator, kept in zip(self._generators, state["generators"], strict=True):
            generator.set_state(kept)
        self._orders, self._at, self._waiting = state["orders"], state["at"], []


def _cut(part: Tensor, indices: Sequence[Tensor]) -> Sequence[Tensor]:
    """Entries that were gathered by all of these indices one after another, by those of each in its shape."""
    pieces = part.split([index.numel() for index in indices])
    if indices[0].ndim == 1:
        return pieces
    return [piece.view(index.shape + piece.shape[1:]) for piece, index in zip(pieces, indices, strict=True)]
