"""Rows as the inputs of a network: numbers in units, labels one-hot, gaps as indicators."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ..emissions import Columns, Part

__all__ = ["Features", "is_binary", "sampled"]

SAMPLE = 10_000
"""Rows that units and first guesses are taken from, at most."""
NUMBERS = 1 << 21
"""Numbers in them, at most, where rows are long."""
FEWEST = 1e-6
"""A column whose spread is a smaller fraction of its size is constant, and stays in its own units."""


class Features(nn.Module):
    """Rows as the inputs of a network: numbers standardised, labels one-hot, missing ones 0 beside an indicator.

    >>> from likely.models.generative.observed import columns_of
    >>> columns = columns_of("auto", torch.tensor([[1.0, 0.0], [3.0, 1.0]]))
    >>> features = Features(columns, (2,), missing=False)
    >>> features.adapt(torch.tensor([[1.0, 0.0], [3.0, 1.0]]), None)
    >>> features(torch.tensor([[1.0, 1.0]])).tolist()
    [[-1.0, 1.0]]
    """

    centre: Tensor
    scale: Tensor

    def __init__(self, columns: Columns, shape: tuple[int, ...], missing: bool) -> None:
        super().__init__()
        self.shape, self.missing = shape, missing
        self.classes: list[int] = []
        """For each column: how many classes it has, 1 for numbers."""
        for part in columns.parts:
            self.classes += [self.classes_of(part)] * (part.columns.stop - part.columns.start)
        width = len(self.classes)
        self.labels = [index for index, count in enumerate(self.classes) if count > 1]
        self.numbers = [index for index, count in enumerate(self.classes) if count == 1]
        self.size = sum(self.classes) + (width if missing else 0)
        self.plain = not self.labels and not missing
        """Whether features keep the shape of a row."""
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    @staticmethod
    def classes_of(part: Part) -> int:
        """How many numbers one column of a part becomes: two labels are told by one."""
        classes = part.target.classes or 2
        return classes if part.likelihood.labels and classes > 2 else 1

    @property
    def owners(self) -> list[int]:
        """The column that each number of a flat row of features comes from."""
        if self.plain:
            return list(range(len(self.classes)))
        labels = [index for index in self.labels for _ in range(self.classes[index])]
        return self.numbers + labels + (list(range(len(self.classes))) if self.missing else [])

    def column(self, index: int, values: Tensor) -> Tensor:
        """The features of one column alone, (n, its features), in the order in which a row has them."""
        gaps = values.isnan().unsqueeze(-1)
        if self.classes[index] > 1:
            own = one_hot(values.nan_to_num().long(), self.classes[index]).to(values) * ~gaps
        else:
            own = ((values - self.centre[index]) / self.scale[index]).nan_to_num().unsqueeze(-1)
        return torch.cat([own, gaps.to(values)], -1) if self.missing else own

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The shape of one row's features."""
        return self.shape if self.plain else (self.size,)

    @torch.no_grad()
    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        """Centre and scale of the columns of numbers, a row as often as its weight; 0/1 columns and labels stay."""
        step = sampled(x)
        flat = x.flatten(1)[::step].double()
        gaps = flat.isnan()
        present = (~gaps).double() if weight is None else weight[::step, None].to(flat) * ~gaps
        count = present.sum(0)
        count = torch.where(count > 0, count, 1.0)
        centre = (present * flat).nansum(0) / count
        spread = ((present * (flat - centre).square()).nansum(0) / count).sqrt()
        spread = torch.where(spread > FEWEST * centre.abs(), spread, 1.0)
        stay = ((flat == 0) | (flat == 1) | gaps).all(0)
        stay[self.labels] = True
        centre[stay], spread[stay] = 0.0, 1.0
        if len(self.shape) == 3:  # pixels are in the units of their channel
            by_channel = centre.view(self.shape[0], -1)
            mean = by_channel.mean(1, keepdim=True)
            wide = (spread.view_as(by_channel).square() + (by_channel - mean).square()).mean(1, keepdim=True).sqrt()
            centre, spread = mean.expand_as(by_channel).reshape(-1), wide.expand_as(by_channel).reshape(-1)
        self.centre.copy_(centre)
        self.scale.copy_(spread)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(x.ndim - len(self.shape))
        standard = (flat - self.centre) / self.scale
        if self.plain:
            return standard.unflatten(-1, self.shape)
        gaps = flat.isnan()
        pieces = [standard.nan_to_num()[..., self.numbers]]
        for index in self.labels:
            codes = flat[..., index].nan_to_num().long()
            pieces.append(one_hot(codes, self.classes[index]).to(x) * ~gaps[..., index : index + 1])
        if self.missing:
            pieces.append(gaps.to(x))
        return torch.cat(pieces, -1)

    def inverse(self, features: Tensor) -> Tensor:
        """Rows from features that keep their shape: numbers in the units of the data."""
        return (features.flatten(1) * self.scale + self.centre).unflatten(1, self.shape)


def sampled(x: Tensor) -> int:
    """The step between rows that are enough to take units from."""
    rows = min(SAMPLE, max(SAMPLE // 10, NUMBERS // max(1, x[:1].numel())))
    return max(1, len(x) // rows)


def is_binary(column: Tensor) -> bool:
    """Whether a column has no value but 0, 1 and gaps."""
    return bool(((column == 0) | (column == 1) | column.isnan()).all())
