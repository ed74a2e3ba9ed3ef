"""Probabilities as free numbers: stick-breaking, row by row, over the entries that may be above 0.

pⱼ = zⱼ Π_{i<j} (1 − zᵢ),   zⱼ = σ(φⱼ − log(K − j)):      φ = 0 is the uniform distribution
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import StickBreakingTransform

__all__ = ["Simplex", "from_sticks", "log_sticks", "pull_sticks", "to_sticks"]

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


def log_sticks(free: Tensor) -> tuple[Tensor, Tensor]:
    """log p (…, K) of φ (…, K − 1), and the fractions z that are broken off, which `pull_sticks` needs.

    log pⱼ = log zⱼ + Σ_{i<j} log(1 − zᵢ)

    >>> log_sticks(torch.zeros(2).double())[0].exp()
    tensor([0.3333, 0.3333, 0.3333], dtype=torch.float64)
    """
    logit = free - torch.arange(free.shape[-1], 0, -1, dtype=free.dtype, device=free.device).log()
    broken = torch.nn.functional.logsigmoid(logit)
    none = free.new_zeros(*free.shape[:-1], 1)
    return torch.cat([broken, none], -1) + torch.cat([none, (broken - logit).cumsum(-1)], -1), broken.exp()


def pull_sticks(sticks: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in φ (…, K − 1) of what has this gradient g (…, K) in log p: gⱼ − zⱼ Σ_{i≥j} gᵢ.

    >>> pull_sticks(torch.tensor([0.25]), torch.tensor([1.0, 0.0]))
    tensor([0.7500])
    """
    rest = gradient.flip(-1).cumsum(-1).flip(-1)
    return torch.addcmul(gradient[..., :-1], sticks, rest[..., :-1], value=-1)


class Simplex:
    """Rows of probabilities (…, R, K), of which only the `allowed` entries (R, K) are above 0, and φ (…, free).

    >>> rows = Simplex(torch.tensor([[True, True, True], [False, True, True]]))
    >>> p = torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.4, 0.6]]).double()
    >>> rows.size, torch.allclose(rows.natural(rows.free(p)), p)
    (3, True)
    >>> rows.natural(torch.zeros(3).double())[1]
    tensor([0.0000, 0.5000, 0.5000], dtype=torch.float64)
    >>> rows.logs(torch.zeros(3).double())[0][1].exp()
    tensor([0.0000, 0.5000, 0.5000], dtype=torch.float64)
    """

    def __init__(self, allowed: Tensor) -> None:
        self.allowed = allowed
        self.entries = [row.nonzero()[:, 0] for row in allowed]
        self.counts = [len(entries) - 1 for entries in self.entries]
        self.size = sum(self.counts)
        self.full = bool(allowed.all())

    def free(self, probabilities: Tensor) -> Tensor:
        """φ of rows (…, R, K)."""
        rows = zip(probabilities.unbind(-2), self.entries, strict=True)
        return torch.cat([to_sticks(row[..., entries]) for row, entries in rows], -1)

    def natural(self, free: Tensor) -> Tensor:
        """Rows (…, R, K) of φ."""
        pieces = free.split(self.counts, -1)
        rows = []
        for piece, entries in zip(pieces, self.entries, strict=True):
            own = from_sticks(piece)
            if len(entries) == self.allowed.shape[1]:
                rows.append(own)
                continue
            row = own.new_zeros(*own.shape[:-1], self.allowed.shape[1])
            rows.append(row.index_copy(-1, entries, own))
        return torch.stack(rows, -2)

    def logs(self, free: Tensor) -> tuple[Tensor, list[Tensor]]:
        """log p (…, R, K) of φ, −∞ where nothing is allowed, and what `pull` needs to go back."""
        if self.full:  # all rows in one
            logs, sticks = log_sticks(free.unflatten(-1, (len(self.entries), -1)))
            return logs, [sticks]
        pieces = [log_sticks(piece) for piece in free.split(self.counts, -1)]
        table = free.new_full((*free.shape[:-1], *self.allowed.shape), -torch.inf)
        for row, (entries, (logs, _)) in enumerate(zip(self.entries, pieces, strict=True)):
            table[..., row, entries] = logs
        return table, [sticks for _, sticks in pieces]

    def pull(self, sticks: list[Tensor], gradient: Tensor) -> Tensor:
        """The gradient in φ of what has this one in log p (…, R, K)."""
        if self.full:
            return pull_sticks(sticks[0], gradient).flatten(-2)
        rows = zip(sticks, gradient.unbind(-2), self.entries, strict=True)
        return torch.cat([pull_sticks(own, row[..., entries]) for own, row, entries in rows], -1)
