"""Pairs of a source and a target, each a sequence of tokens: the rows that an encoder–decoder learns from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ...data.rows import Ragged, arranged
from ...inference.dataset import Batch, Dataset

__all__ = ["ABSENT", "Pairs", "padded", "ragged"]

ABSENT = -1
"""Where a row has no token: after its end."""
BLOCK = 1 << 13
"""Tokens of targets in one block of a pass over all rows, more or less."""


@dataclass(frozen=True)
class Pairs(Dataset):
    """x are targets, each with a boundary before and after it; the condition of each is its source.

    A batch is as wide as its longest rows, and batches are cut from rows of similar lengths.

    >>> targets, sources = Ragged.of([[9, 1, 9], [9, 2, 3, 9]]), Ragged.of([[4, 9], [5, 6, 7, 9]])
    >>> batch = Pairs.of(sources, targets).batch(torch.tensor([0]))
    >>> batch.x, batch.condition
    (tensor([[9, 1, 9]]), tensor([[4, 9]]))
    """

    @classmethod
    def of(
        cls, sources: Ragged, targets: Ragged, weight: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Self:
        """Rows by their sources and targets, with a weight for each."""
        own = None if weight is None else weight.to(targets.device, dtype)
        return cls(targets, None, own, dtype, condition=sources, integer=True)

    def batch(self, index: Tensor | slice) -> Batch:
        rows = index if self.rows is None else self.rows[index]
        shape = rows.shape if isinstance(rows, Tensor) else (-1,)
        flat: Any = rows.flatten() if isinstance(rows, Tensor) else rows
        assert isinstance(self.x, Ragged)
        assert isinstance(self.condition, Ragged)
        x, condition = padded(self.x[flat]), padded(self.condition[flat])
        weight: Any = None if self.weight is None else self.weight[rows]
        return Batch(x.view(*shape, x.shape[1]), None, weight, condition.view(*shape, condition.shape[1]))

    def blocks(self, part: slice | None = None, rows: int | None = None) -> Iterator[Batch]:
        start, stop, _ = (part or slice(None)).indices(len(self))
        most = max(1, BLOCK // int(self.x.shape[0]))
        step = min(most, rows or most)
        for first in range(start, stop, step):
            yield self.batch(slice(first, min(first + step, stop)))

    def order(self, generator: torch.Generator, batch_size: int) -> Tensor:
        """A new order in which rows of similar lengths share a batch: of targets first, then of sources."""
        order = torch.randperm(len(self), generator=generator)
        if batch_size >= len(self):
            return order
        assert isinstance(self.x, Ragged)
        assert isinstance(self.condition, Ragged)
        sources = self.condition.lengths
        lengths = self.x.lengths * (int(sources.max()) + 1) + sources
        return arranged((lengths if self.rows is None else lengths[self.rows]).cpu(), order, batch_size, generator)

    def total_weight(self) -> float:
        """Tokens that are predicted, each with the weight of its row."""
        everything = slice(None) if self.rows is None else self.rows
        assert isinstance(self.x, Ragged)
        counts = (self.x.lengths - 1)[everything].double()
        if self.weight is None:
            return float(counts.sum())
        assert isinstance(self.weight, Tensor)
        return float((counts * self.weight[everything]).sum())


def padded(rows: Ragged) -> Tensor:
    """Token numbers (n, longest), −1 after the end of each.

    >>> padded(Ragged.of([[1, 2], [3]]))
    tensor([[ 1,  2],
            [ 3, -1]])
    """
    dense, present = rows.padded()
    return torch.where(present, dense, ABSENT)


def ragged(coded: list[np.ndarray]) -> Ragged:
    """Rows of token numbers, one after the other.

    >>> ragged([np.array([1, 2]), np.array([3])]).lengths
    tensor([2, 1])
    """
    return Ragged.from_numpy(np.concatenate(coded), np.cumsum([0, *(len(own) for own in coded)]))
