"""The rows of each step: every epoch is a new order of all rows, cut into batches; or every batch is drawn anew.

Without replacement an epoch visits each row once. With replacement the noise of a step remembers nothing of the steps
before, as the theory of some samplers needs. Members of an ensemble have orders of their own.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...core import distributed
from ..dataset import Dataset

__all__ = ["Batches"]


class Batches:
    """`next()` gives the rows of the next step, (b,) or (members, b); they are a fraction `fraction` of all.

    >>> data = Dataset(torch.zeros(5, 1), torch.zeros(5), None, torch.float32)
    >>> batches = Batches(data, 2, [0])
    >>> [len(batches.next()) for _ in range(batches.count)]
    [2, 2, 1]
    """

    def __init__(self, data: Dataset, size: int | None, seeds: list[int], *, replacement: bool = False) -> None:
        self.data, self.replacement = data, replacement
        self.size = min(size or len(data), len(data))
        self.count = math.ceil(len(data) / self.size)
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._orders: Tensor | None = None
        self._at = 0
        self._alone = distributed.world() == 1
        self.fraction = 1.0
        self.whole = self.count == 1 and len(seeds) == 1 and self._alone and not replacement
        """Whether a batch is all rows, in whichever order, so that there is nothing to choose."""

    def next(self) -> Tensor | slice:
        """This process's part of the next batch."""
        if self.whole:
            return slice(None)
        if self.replacement:
            drawn = [torch.randint(len(self.data), (self.size,), generator=g) for g in self._generators]
            return self._own(self._stacked(drawn))
        if self._orders is None:
            self._orders = self._stacked([self.data.order(g, self.size) for g in self._generators])
        first = self._at * self.size
        rows = self._orders[..., first : first + self.size]
        self._at += 1
        if self._at == self.count:
            self._orders, self._at = None, 0
        return self._own(rows)

    def _stacked(self, rows: list[Tensor]) -> Tensor:
        together = torch.stack(rows) if len(rows) > 1 else rows[0]
        return together.to(self.data.x.device)

    def _own(self, rows: Tensor) -> Tensor:
        self.fraction = rows.shape[-1] / len(self.data)
        return rows if self._alone else rows[..., distributed.shard(rows.shape[-1])]

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        generators = [generator.get_state() for generator in self._generators]
        return {"generators": generators, "orders": self._orders, "at": self._at}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        for generator, kept in zip(self._generators, state["generators"], strict=True):
            generator.set_state(kept)
        self._orders, self._at = state["orders"], state["at"]
