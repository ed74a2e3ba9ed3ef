"""Positions: what tells attention where a step is, for without them it sees a set.

    learned      X' = X + E or [X, E],   a row of E is learned for each position
    sinusoidal   X' = X + E or [X, E],   E_{i,2j} = sin(i / 10000^{2j/e}),   E_{i,2j+1} = cos(i / 10000^{2j/e})
    relative     score(q_i, k_j) + b_{i−j},   a number is learned for each distance, those beyond the reach alike

The first two say where a step is in the whole; the last only how far apart two steps are, so that nothing changes when
all steps move by the same number of positions.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ...core.errors import DataError

__all__ = ["LearnedPositions", "RelativePositions", "SinusoidalPositions", "join_positions", "sinusoids"]

LONGEST_WAVE = 10_000.0


def sinusoids(steps: int, width: int) -> Tensor:
    """The table E of sines and cosines, (steps, width) in double precision: wavelengths from 2π to 10000·2π.

    A shift of all positions by k is a rotation of each pair (sin, cos): it does not depend on the position.

    >>> sinusoids(2, 4)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.outer(torch.arange(steps, dtype=torch.float64), LONGEST_WAVE ** (-even / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width]


class SinusoidalPositions(nn.Module):
    """E of sines and cosines for as many steps as there are: (n, t, …) → (t, width). Nothing is learned.

    >>> SinusoidalPositions(4)(torch.zeros(1, 3, 8)).shape
    torch.Size([3, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        return sinusoids(x.shape[1], self.width).to(x)


class LearnedPositions(nn.Module):
    """A learned vector for each of the first `longest` positions: (n, t, …) → (t, width), t ≤ longest.

    >>> LearnedPositions(5, 4)(torch.zeros(1, 3, 8)).shape
    torch.Size([3, 4])
    """

    def __init__(self, longest: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(longest, width) * 0.5**0.5)  # the size that sines have

    def forward(self, x: Tensor) -> Tensor:
        steps, longest = x.shape[1], len(self.weight)
        if steps > longest:
            raise DataError(
                f"X has a sequence of {steps} steps, but positions were learned for {longest}; fit with "
                f'longest={steps} or more, or with positions="sinusoidal" or "relative", which have no maximum length.'
            )
        return self.weight[:steps]


def join_positions(x: Tensor, positions: Tensor, join: Literal["add", "concatenate"]) -> Tensor:
    """X + E, or [X, E] along the last axis; x is (n, t, d) and positions are (t, e).

    >>> join_positions(torch.ones(2, 3, 4), torch.ones(3, 2), "concatenate").shape
    torch.Size([2, 3, 6])
    """
    if join == "add":
        return x + positions
    return torch.cat([x, positions.expand(len(x), -1, -1)], -1)


class RelativePositions(nn.Module):
    """A bias on scores for each head and distance: b_{h, i−j} at (h, i, j), distances clipped to ± reach.

    With `token`, the last query and the last key are a class token, which has no position: it has a bias of its own for
    the steps that look at it and for those it looks at.

    >>> bias = RelativePositions(heads=2, reach=3)(5, 5)
    >>> bias.shape, torch.equal(bias[:, 1:, 1:], bias[:, :-1, :-1]), torch.equal(bias[:, 4, 0], bias[:, 3, 0])
    (torch.Size([2, 5, 5]), True, True)
    """

    def __init__(self, heads: int, reach: int, token: bool = False) -> None:
        super().__init__()
        self.reach = reach
        self.weight = nn.Parameter(torch.randn(heads, 2 * reach + 1))  # scores start at the same order, 1
        self.token = nn.Parameter(torch.randn(heads, 2)) if token else None

    def forward(self, queries: int, keys: int) -> Tensor:
        if self.token is None:
            return self._among_steps(queries, keys)
        steps = self._among_steps(queries - 1, keys - 1)
        looked_at, looking = (part.unsqueeze(-1) for part in self.token.split(1, -1))
        steps = torch.cat([steps, looked_at.expand(-1, queries - 1, -1)], -1)
        last = torch.cat([looking.expand(-1, -1, keys - 1), torch.zeros_like(looking)], -1)
        return torch.cat([steps, last], 1)

    def of_last(self, keys: int) -> Tensor:
        """The last row among so many steps: (heads, 1, keys)."""
        distance = torch.arange(keys - 1, -1, -1, device=self.weight.device).clamp_max(self.reach)
        return self.weight[:, distance + self.reach].unsqueeze(1)

    def _among_steps(self, queries: int, keys: int) -> Tensor:
        """Row i is a window on the biases in order of distance, read backwards: every diagonal is constant."""
        distance = torch.arange(1 - keys, queries, device=self.weight.device).clamp(-self.reach, self.reach)
        ordered = self.weight[:, distance + self.reach]
        return ordered.unfold(1, keys, 1).flip(-1)
