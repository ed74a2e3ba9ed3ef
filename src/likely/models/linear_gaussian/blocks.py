"""Rows of X a block at a time, with the patterns of what is known in them: rows of one pattern share their algebra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["ROWS", "Block", "blocks", "by_pattern", "has_missing", "patterns"]

ROWS = 1024
"""Rows handled at once: a pass over X needs no second X, and its steps meet in the cache."""


class Block(NamedTuple):
    """Rows, 0 where a value is missing, and the patterns of what they have: `masks` are 1 where a value is known."""

    values: Tensor  # (m, d)
    ones: Tensor  # (m, 1): 1, or what each row is multiplied by
    masks: Tensor  # (b, d)
    owner: Tensor  # (m,): the row of `masks` that each row has
    rows: slice | Tensor  # where they stand in X


def has_missing(x: Tensor) -> bool:
    """Whether some value is NaN (X has no infinity: its door is `as_rows`)."""
    return x.is_floating_point() and bool(x.sum().isnan())


def patterns(x: Tensor) -> tuple[Tensor, Tensor]:
    """The different patterns of known values (P, d), 1 where known, and the pattern of each row (n,).

    >>> patterns(torch.tensor([[1.0, 2.0], [torch.nan, 2.0], [3.0, 4.0]]))
    (tensor([[1., 1.], [0., 1.]], dtype=torch.float64), tensor([0, 1, 0]))
    """
    packed = np.concatenate([np.packbits(part.isnan().numpy(), axis=1) for part in x.split(ROWS)])
    kinds, owner = np.unique(packed, axis=0, return_inverse=True)
    missing = np.unpackbits(kinds, axis=1, count=x.shape[1])
    return torch.from_numpy(1.0 - missing), torch.from_numpy(owner.reshape(-1).astype(np.int64))


def blocks(x: Tensor, size: int = ROWS) -> Iterator[Block]:
    """All rows, a block of this size at a time; rows with missing values come in the order of their patterns."""
    one = torch.ones(1, 1, dtype=torch.float64)
    if not has_missing(x):
        masks = torch.ones(1, x.shape[1], dtype=torch.float64)
        for start in range(0, len(x), size):
            values = x[start : start + size].double()
            yield Block(values, one, masks, torch.zeros(len(values), dtype=torch.int64), slice(start, start + size))
        return
    masks, owner = patterns(x)
    for rows in torch.argsort(owner, stable=True).split(size):
        first, last = int(owner[rows[0]]), int(owner[rows[-1]])
        yield Block(x[rows].double().nan_to_num(nan=0.0), one, masks[first : last + 1], owner[rows] - first, rows)


def by_pattern(block: Block) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each pattern, the rows of the block that have it, and its known columns."""
    for number, pattern in enumerate(block.masks):
        yield (block.owner == number).nonzero()[:, 0], pattern.nonzero()[:, 0]
