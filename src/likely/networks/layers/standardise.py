"""Inputs in units of their own: what a network sees of raw columns, channels and features.

    z = (x − centre) / scale,   and   z ↦ z / √(1 + (z / 3)²)   for columns with heavy tails

Centre and scale are the mean and the standard deviation over the training rows. Three kinds of columns have others:

- 0/1 and constant columns say all they have to say as they are: a 0/1 column stays, a constant one becomes 0;
- a column that is mostly 0 keeps its zeros, and the other values get size 1, as if it were an indicator: divided by the
  standard deviation, a pixel that is lit in one image of a thousand would shine thirty times as bright as the others;
- where a few rows make up the standard deviation (amounts over many orders of magnitude, 999999 for "unknown"), the
  median and the interquartile range take its place, and the tails are bent to ± 3 so that no row dominates the rest.

A table also remembers the ends of its columns. New values more than 3 beyond them, such as a typo, count for a tenth of
what they are further out, and values that differ from a constant column count for nothing: no weight has learned from
such rows, and an answer that follows them is wrong without bound.

    z ↦ z̄ + (z − z̄)/10,   z̄ = min(max(z, low − 3), high + 3)
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...data.rows import Inputs, Rows

__all__ = ["SMALLEST", "Standardise", "Statistics", "standardised", "statistics"]

LIMIT = 3.0
"""Where the tails of a heavy-tailed column end, in units of its bulk."""
HEAVY, FAR = 3.0, 4.0
"""Tails are heavy if the standard deviation is so many times that of the bulk, and a row so many of them away."""
OF_QUARTILES = 1.3489795003921634
"""The interquartile range of a normal distribution in units of its standard deviation."""
SMALLEST = 1e-30
"""No scale is below it, so that float32 holds them all."""
ENTRIES, LEAST, SORTED = 1 << 20, 2_000, 1 << 14
"""Numbers that moments are taken of, but of no fewer rows than that, and numbers of a column that quartiles are taken
of: units need not see every row."""
BLOCK = 1 << 16
"""Numbers that are worked on at once."""
ROUNDING, NEARLY_HALF = 1e-9, 0.45
"""What is safely more than a sum may be wrong by; less than half of the weight by more than a sampled median may be."""
MARGIN, BEYOND = 3.0, 0.1
"""How far a value may lie beyond those of the training rows before it counts for less, and how much less."""
IGNORED = 1e30
"""The scale of a constant column of a table."""


class Statistics(NamedTuple):
    """Of each column: z = (x − centre)/scale, and 1/limit for columns that are bent (0: not; None: none).

    `low` and `high` are the z beyond which values count for less; None where there is no such limit.
    """

    centre: Tensor
    scale: Tensor
    bend: Tensor | None = None
    low: Tensor | None = None
    high: Tensor | None = None

    @classmethod
    def blank(cls, columns: tuple[int, ...], tensors: Container[str]) -> Statistics:
        """Those to be filled from a file with these tensors.

        >>> Statistics.blank((2,), {"buffers.inputs.centre", "buffers.inputs.scale"})
        Statistics(centre=tensor([1., 1.]), scale=tensor([1., 1.]), bend=None, low=None, high=None)
        """
        own = torch.ones(columns)
        there = {name for name in cls._fields if f"buffers.inputs.{name}" in tensors}
        bend = own if "bend" in there else None
        limit = own if there & {"low", "high"} else None  # both or none
        return cls(own, own, bend, limit, limit)


class Standardise(nn.Module):
    """x, or the features of `Rows`, in units of the training rows. Nothing here is learned by gradients.

    >>> x = torch.tensor([[100.0, 1.0], [300.0, 0.0], [200.0, 1.0]])
    >>> Standardise(*statistics(x, (2,)))(x).round(decimals=2).tolist()
    [[-1.22, 1.0], [1.22, 0.0], [0.0, 1.0]]
    """

    centre: Tensor
    scale: Tensor
    bend: Tensor | None
    low: Tensor | None
    high: Tensor | None

    def __init__(
        self,
        centre: Tensor,
        scale: Tensor,
        bend: Tensor | None = None,
        low: Tensor | None = None,
        high: Tensor | None = None,
    ) -> None:
        super().__init__()
        for name, value in Statistics(centre, scale, bend, low, high)._asdict().items():
            self.register_buffer(name, None if value is None else value.clone())

    def forward(self, x: Inputs) -> Inputs:
        return x.with_features(self.of(x.features)) if isinstance(x, Rows) else self.of(x)

    def of(self, x: Tensor) -> Tensor:
        """The same of a tensor (…, *columns)."""
        return standardised(x, self.centre, self.scale, self.bend, self.low, self.high)

    @torch.no_grad()
    def once(self, x: Tensor) -> Tensor:
        """The same for rows that are brought into units before training: few columns have tails to bend."""
        z = (x - self.centre).div_(self.scale)
        if self.bend is not None and self.bend.ndim != 1:
            z = _bent(z, self.bend)
        elif self.bend is not None:
            columns = self.bend.nonzero().ravel()
            z[..., columns] = _bent(z[..., columns], self.bend[columns])
        if self.low is None or self.high is None or not _leaves(z, self.low, self.high):
            return z
        return _drawn_in(z, self.low, self.high)

    @torch.no_grad()
    def with_derivative(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """z, and dz/dx, which broadcasts against it: 1/scale, divided by (1 + (z/3)²)^1.5 where z is bent.

        >>> Standardise(torch.tensor([1.0]), torch.tensor([2.0])).with_derivative(torch.tensor([[5.0]]))
        (tensor([[2.]]), tensor([0.5000]))
        """
        z = (x - self.centre).div_(self.scale)
        derivative = 1 / self.scale
        if self.bend is not None:
            size = torch.hypot(z * self.bend, z.new_ones(()))
            z, derivative = z.div_(size), size.pow_(-3).div_(self.scale)
        if self.low is None or self.high is None or not _leaves(z, self.low, self.high):
            return z, derivative
        beyond = (z < self.low) | (z > self.high)
        return _drawn_in(z, self.low, self.high), torch.where(beyond, BEYOND * derivative, derivative)

    def extra_repr(self) -> str:
        """As torch shows its own layers."""
        return f"columns={tuple(self.centre.shape)}, bent={self.bend is not None}"


def standardised(
    x: Tensor,
    centre: Tensor,
    scale: Tensor,
    bend: Tensor | None = None,
    low: Tensor | None = None,
    high: Tensor | None = None,
) -> Tensor:
    """z of x, by tensors that broadcast against it."""
    z = (x - centre) / scale
    z = z if bend is None else _bent(z, bend)
    return z if low is None or high is None else _drawn_in(z, low, high)


def _bent(z: Tensor, bend: Tensor) -> Tensor:
    return z / torch.hypot(z * bend, z.new_ones(()))  # no square that could overflow


def _drawn_in(z: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """z as it is between the limits, and a tenth of what is beyond them."""
    return torch.lerp(z, z.clamp(low, high), 1 - BEYOND)


def _leaves(z: Tensor, low: Tensor, high: Tensor) -> bool:
    """Whether a value lies beyond the limits. None of a training row does, so that its rows are looked at once."""
    rows = z.reshape(-1, z.shape[-1])
    return len(rows) > 0 and bool((rows.amin(0) < low).any() or (rows.amax(0) > high).any())


@torch.no_grad()
def statistics(
    x: Inputs, columns: tuple[int, ...], weight: Tensor | None = None, *, limited: bool = False
) -> Statistics | None:
    """Centre, scale and bend of shape `columns`, which broadcasts against a row (or a position of `Rows`).

    `weight` has a number for each row, or for each position of `Rows`; what has weight 0 has no part in it. With
    `limited` there are `low` and `high` too, and constant columns count for nothing. None if nothing would change: all
    columns are 0/1.

    >>> statistics(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), (2,)) is None
    True
    >>> statistics(torch.tensor([[5.0], [5.0]]), (1,))
    Statistics(centre=tensor([5.], dtype=torch.float64), scale=tensor([1.], dtype=torch.float64), bend=None, ...)
    """
    entries = x.features if isinstance(x, Rows) else x
    if weight is not None and isinstance(x, Rows) and len(weight) != len(entries):
        weight = torch.repeat_interleave(weight.to(x.device), x.lengths)
    if weight is not None:
        weight = weight.to(entries.device, torch.float64)
        if not bool(weight.all()):
            entries, weight = entries[weight > 0], weight[weight > 0]
    lowest, highest = _ends(entries, columns)
    count = max(LEAST, ENTRIES // max(1, entries[0].numel()))
    step = -(-len(entries) // count)
    table = _by_column(entries[::step], columns).double()  # (entries, columns)
    weights = table.new_ones(len(entries[::step])) if weight is None else weight[::step]
    weights = weights.repeat_interleave(len(table) // len(weights))
    unseen = 0.0 if step == 1 else 1 / len(entries)
    moments = _of_columns(table, weights / weights.sum(), lowest, highest, unseen)
    if limited:
        moments = _with_limits(moments, lowest, highest)
    if bool((moments.centre == 0).all() and (moments.scale == 1).all()):
        return None
    return Statistics(*(None if part is None else part.reshape(columns) for part in moments))  # type: ignore[arg-type]


def _of_columns(x: Tensor, weight: Tensor, lowest: Tensor, highest: Tensor, unseen: float) -> Statistics:
    """Of a table (n, d) whose rows have weights that add up to 1.

    The ends are those of all rows: where the table is a sample of them, each end counts as one of the `unseen` rows.
    """
    centre = weight @ x
    end = torch.maximum(highest - centre, centre - lowest)
    scale = (_mean(x, weight, lambda part: (part - centre).square_()) + unseen * end.square()).sqrt()
    squares = _mean(x, weight, torch.square)
    far = end > FAR * scale
    binary = (lowest >= 0) & (highest <= 1) & (centre - squares < ROUNDING)
    binary[binary.clone()] = _alike(x[:, binary], torch.square)  # in [0, 1] only 0 and 1 are their squares
    constant = scale <= 1e-12 * torch.maximum(lowest.abs(), highest.abs())  # what is left is rounding
    present = _mean(x, weight, lambda part: part.sign().abs_())
    sparse = (present < 0.5) & ~constant
    size = (squares / present.clamp_min(1e-300)).sqrt()
    heavy = torch.zeros_like(far)
    doubtful = far & ~binary & ~constant
    light = (doubtful & sparse).nonzero().ravel()
    doubtful[light] = _below(x[:, light], weight, size[light] / HEAVY) > NEARLY_HALF * present[light]
    chosen = doubtful.nonzero().ravel()
    for column, entries in zip(chosen.tolist(), x[:, chosen].T.contiguous(), strict=True):
        values, own = entries, weight
        if sparse[column]:
            kept = values.nonzero().ravel()
            values, own = values[kept].abs_(), weight[kept]
            middle, bulk, whole = torch.zeros(()), float(_quantiles(values, own, (0.5,))), float(size[column])
        else:
            low, middle, high = _quantiles(values, own, (0.25, 0.5, 0.75))
            bulk, whole = float(high - low) / OF_QUARTILES, float(scale[column])
        if 0 < bulk < whole / HEAVY:
            heavy[column], centre[column], scale[column] = True, middle, bulk
    plain = sparse & ~heavy
    centre, scale = torch.where(plain, 0.0, centre), torch.where(plain, size, scale)
    centre = torch.where(constant, lowest, torch.where(binary, 0.0, centre))
    scale = torch.where(constant | binary, 1.0, scale).clamp_min(SMALLEST)
    return Statistics(centre, scale, heavy.double() / LIMIT if bool(heavy.any()) else None)


def _with_limits(moments: Statistics, lowest: Tensor, highest: Tensor) -> Statistics:
    """Of a table whose columns end there; what is constant in it says nothing."""
    scale = torch.where(lowest == highest, IGNORED, moments.scale)
    low, high = (standardised(end, moments.centre, scale, moments.bend) for end in (lowest, highest))
    return Statistics(moments.centre, scale, moments.bend, low - MARGIN, high + MARGIN)


def _alike(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Of which columns all numbers are what the function makes of them."""
    parts = [(part == function(part)).all(0) for part in x.split(_rows(x))]
    return torch.stack(parts).all(0)


def _below(x: Tensor, weight: Tensor, limit: Tensor) -> Tensor:
    """The weight of the numbers of each column that are not 0, but nearer to it than its limit."""
    return _mean(x, weight, lambda part: ((part != 0) & (part.abs() < limit)).double())


def _mean(x: Tensor, weight: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Σ w f(x) of each column, by blocks of rows that stay in the cache."""
    parts = zip(x.split(_rows(x)), weight.split(_rows(x)), strict=True)
    return torch.stack([own @ function(part) for part, own in parts]).sum(0)


def _rows(x: Tensor) -> int:
    return max(1, BLOCK // max(1, x.shape[1]))


def _quantiles(values: Tensor, weight: Tensor, levels: tuple[float, ...]) -> Tensor:
    """The smallest values that at least these fractions of the weight do not exceed."""
    step = -(-len(values) // SORTED)
    ordered, order = values[::step].sort()
    reached = weight[::step][order].cumsum(0)
    ranks = torch.searchsorted(reached, reached[-1] * reached.new_tensor(levels) * (1 - 1e-12))
    return ordered[ranks.clamp_max(len(ordered) - 1)]


def _ends(entries: Tensor, columns: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The smallest and the largest value of each column, over all entries."""
    axes = _others(entries, columns)
    return tuple(part(entries, axes).reshape(-1).double() for part in (torch.amin, torch.amax))  # type: ignore[return-value]


def _by_column(entries: Tensor, columns: tuple[int, ...]) -> Tensor:
    """(n, …) as a table (entries, columns), the entries of one row together."""
    axes = _others(entries, columns)
    kept = [axis for axis in range(entries.ndim) if axis not in axes]
    return entries.permute(*axes, *kept).reshape(-1, max(1, torch.Size(columns).numel()))


def _others(entries: Tensor, columns: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of (n, …) over which a column's values lie."""
    first = entries.ndim - len(columns)
    return (*range(first), *(first + axis for axis, length in enumerate(columns) if length == 1))
