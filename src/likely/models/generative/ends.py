"""Ends: values at which many rows of a column stop, spread over the half-line beyond.

    y = low − gap·|n|  if x ≤ low,      y = high + gap·|n|  if x ≥ high,      y = x  between,      n ~ N(0, 1)

Ink of a pixel, rain of a day, hours above a limit: they have a smallest or a largest value with a probability of its
own, which a density can only come near; it is as if values beyond had been cut off. So the end has the probability
of its half-line, of which log p(y) − log q(y | x) is in the mean a lower bound, and of new y one that lies
beyond is the end itself. The gap is the standard deviation of what lies between the ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...core.random import normal_like
from ...likelihoods.special import LOG_2PI

__all__ = ["Ends"]

FAR = 1e38
"""An end that no row has; files hold finite numbers only."""
MANY = 0.05
"""The fraction of rows that an end has, at least."""
MORE = 2.0
"""How many times as many rows it has as the value next to it, at least: one step of a grid is no end."""


class Ends(nn.Module):
    """Spreads the ends of so many columns, and cuts them off again.

    >>> column = torch.tensor([[0.0], [0.0], [0.0], [2.0], [5.0], [8.0]])
    >>> ends = Ends(1)
    >>> ends.adapt(column)
    >>> spread = ends(column)
    >>> bool((spread[:3] < 0).all()), torch.equal(ends.inverse(spread), column)
    (True, True)
    >>> ends.inverse(torch.tensor([[0.9], [1.1], [9.0]])).flatten().tolist()
    [0.0, 2.0, 9.0]
    """

    low: Tensor
    high: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        nothing = torch.tensor([[-FAR], [-FAR], [1.0]]).repeat(1, columns)
        self.register_buffer("low", nothing.clone())
        self.register_buffer("high", nothing * torch.tensor([[-1.0], [-1.0], [1.0]]))

    @torch.no_grad()
    def adapt(self, x: Tensor, channels: int | None = None, labels: Sequence[int] = ()) -> None:
        """Find the ends of rows (n, columns); columns of one of so many `channels` are taken together.

        Those of `labels` have none.
        """
        columns = x.shape[1]
        x = x.double().clone()
        x[:, list(labels)] = torch.nan
        parts = columns if channels is None else channels
        groups = x.reshape(len(x), parts, -1).transpose(0, 1).flatten(1)
        for buffer, sign in ((self.low, 1.0), (self.high, -1.0)):
            ends = torch.tensor([_end(sign * values) for values in groups], dtype=buffer.dtype).T
            ends[:2] *= sign
            buffer.copy_(ends.repeat_interleave(columns // parts, 1))

    def forward(self, x: Tensor) -> Tensor:
        far = normal_like(x).abs()
        first, last = self._reached(x)
        below = torch.where(first, self.low[0] - self.low[2] * far, x)
        return torch.where(last, self.high[0] + self.high[2] * far, below)

    def inverse(self, y: Tensor) -> Tensor:
        """Rows again: what lies nearer to an end than to the value next to it, or beyond, is the end."""
        first, last = self._reached(y)
        inside = torch.minimum(torch.maximum(y, self.low[1]), self.high[1])
        return torch.where(first, self.low[0], torch.where(last, self.high[0], inside))

    def log_prob(self, y: Tensor, x: Tensor) -> Tensor:
        """log q(y | x) of spread rows, summed over the ends of each row, (n,)."""
        terms = torch.zeros_like(y)
        for reached, (end, _, gap) in zip(self._reached(x), (self.low, self.high), strict=True):
            log_q = math.log(2) - 0.5 * LOG_2PI - gap.log() - 0.5 * ((y - end) / gap).square()
            terms = torch.where(reached, log_q, terms)
        return terms.sum(-1)

    def _reached(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Where rows are at the low end, and at the high end."""
        return x < (self.low[0] + self.low[1]) / 2, x > (self.high[0] + self.high[1]) / 2


def _end(values: Tensor) -> tuple[float, float, float]:
    """The smallest value, the one next to it, and the gap; −`FAR` where no more rows have it than others.

    >>> _end(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    (-1e+38, -1e+38, 1.0)
    """
    levels, counts = values[~values.isnan()].unique(return_counts=True)
    many = len(levels) > 3 and counts[0] >= max(MANY * counts.sum(), MORE * counts[1], 3)
    if not bool(many):
        return -FAR, -FAR, 1.0
    last = len(levels) - int(counts[-1] >= max(MANY * counts.sum(), MORE * counts[-2]))
    share = counts[1:last].double() / counts[1:last].sum()
    mean = share @ levels[1:last]
    gap = (share @ (levels[1:last] - mean).square()).sqrt()
    return float(levels[0]), float(levels[1]), float(gap.clamp_min(levels[1] - levels[0]))
