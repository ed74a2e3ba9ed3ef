"""Probabilities as free numbers: stick-breaking, row by row, over the entries that may be above 0.

pⱼ = zⱼ Π_{i<j} (1 − zᵢ),   zⱼ = σ(φⱼ − log(K − j)):      φ = 0 is the uniform distribution
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import StickBreakingTransform

__all__ = ["Simplex", "from_sticks", "to_sticks"]

LEAST = 1e-12
"""The least probability that has a free number of its own: at 0 it would be −∞."""


def to_sticks(probabilities: Tensor) -> Tensor:
    """φ (…, K − 1) of probabilities (…, K).

    >>> to_sticks(torch.tensor([0.25, 0.25, 0.5]).double()).shape
    torch.Size([2])
    """
    own = probabilities.clamp_min(LEAST)
    return StickBreakingTransform().inv(own / own.sum(-1, keepdim=True))


def from_sticks(free: Tensor) -> Tensor:
    """Probabilities (…, K) of φ (…, K − 1).

    >>> from_sticks(torch.zeros(3).double())
    tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    return StickBreakingTransform()(free) if free.shape[-1] else free.new_ones(*free.shape[:-1], 1)


class Simplex:
    """Rows of probabilities (…, R, K), of which only the `allowed` entries (R, K) are above 0, and φ (…, free).

    >>> rows = Simplex(torch.tensor([[True, True, True], [False, True, True]]))
    >>> p = torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.4, 0.6]]).double()
    >>> rows.size, torch.allclose(rows.natural(rows.free(p)), p)
    (3, True)
    >>> rows.natural(torch.zeros(3).double())[1]
    tensor([0.0000, 0.5000, 0.5000], dtype=torch.float64)
    """

    def __init__(self, allowed: Tensor) -> None:
        self.allowed = allowed
        self.entries = [row.nonzero()[:, 0] for row in allowed]
        self.size = sum(len(entries) - 1 for entries in self.entries)

    def free(self, probabilities: Tensor) -> Tensor:
        """φ of rows (…, R, K)."""
        rows = zip(probabilities.unbind(-2), self.entries, strict=True)
        return torch.cat([to_sticks(row[..., entries]) for row, entries in rows], -1)

    def natural(self, free: Tensor) -> Tensor:
        """Rows (…, R, K) of φ."""
        pieces = free.split([len(entries) - 1 for entries in self.entries], -1)
        rows = []
        for piece, entries in zip(pieces, self.entries, strict=True):
            own = from_sticks(piece)
            if len(entries) == self.allowed.shape[1]:
                rows.append(own)
                continue
            row = own.new_zeros(*own.shape[:-1], self.allowed.shape[1])
            rows.append(row.index_copy(-1, entries, own))
        return torch.stack(rows, -2)
