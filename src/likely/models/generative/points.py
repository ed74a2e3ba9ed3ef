"""Rows as points that noise and networks can move: numbers in units, each label a corner of its own.

    red  →  (1 − p, −q)/s      blue  →  (−p, 1 − q)/s      and back to the label with the largest number

p, q are how often the labels occur and s² the mean of their variances, so labels have the size of numbers.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor
from torch.special import ndtr

from ...core.random import normal_like
from ..emissions import Columns, Part
from .ends import Ends
from .features import Features, sampled

__all__ = ["Points"]

TEMPERATURE = 0.5
"""Of the relaxed draws through which gradients reach a label's chances."""


class Points(Features):
    """Features with a way back, for models of numbers that are fitted to mixed tables.

    With `ends`, those of columns that many rows have are spread over what lies beyond (see `ends`).

    >>> from likely.models.generative.observed import columns_of
    >>> from likely.models.generative.rows import RowForm
    >>> form, x = RowForm.read(None, {"size": [1.0, 2.5, 1.0], "colour": ["red", "blue", "red"]})
    >>> points = Points(columns_of("auto", x, form.columns), form.shape)
    >>> points.adapt(x, None)
    >>> points.out_shape, torch.equal(points.inverse(points(x)), x)
    ((3,), True)
    """

    middle: Tensor
    unit: Tensor

    def __init__(self, columns: Columns, shape: tuple[int, ...], *, ends: bool = False) -> None:
        super().__init__(columns, shape, missing=False)
        self.ends = Ends(len(self.classes)) if ends else None
        edges = [len(self.numbers)]
        for index in self.labels:
            edges.append(edges[-1] + self.classes[index])
        self.blocks = [slice(first, last) for first, last in pairwise(edges)]
        """Where a point has each label."""
        if self.labels:
            self.register_buffer("middle", torch.zeros(self.size))
            self.register_buffer("unit", torch.ones(self.size))

    @staticmethod
    def classes_of(part: Part) -> int:
        return (part.target.classes or 2) if part.likelihood.labels else 1

    @torch.no_grad()
    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        if self.ends is not None:
            channels = self.shape[0] if len(self.shape) == 3 else None
            self.ends.adapt(x.flatten(1)[:: sampled(x)], channels, self.labels)
        super().adapt(self._spread_ends(x), weight)
        if self.labels:
            corners = super().forward(x.to(self.centre.dtype)).double()
            for block in self.blocks:
                frequency = corners[:, block].mean(0)
                self.middle[block] = frequency.to(self.middle)
                self.unit[block] = (frequency * (1 - frequency)).mean().sqrt().clamp_min(1e-3).to(self.unit)

    def _spread_ends(self, x: Tensor) -> Tensor:
        if self.ends is None:
            return x
        return self.ends(x.flatten(x.ndim - len(self.shape))).view_as(x)

    def _cut_off(self, rows: Tensor) -> Tensor:
        if self.ends is None:
            return rows
        return self.ends.inverse(rows.flatten(rows.ndim - len(self.shape))).view_as(rows)

    def ends_log_prob(self, points: Tensor, x: Tensor) -> Tensor:
        """log q of where the ends of rows x were spread to, (n,)."""
        if self.ends is None:
            return points.new_zeros(len(points))
        columns = self.numbers if self.labels else list(range(len(self.classes)))
        own = points.flatten(1)[:, : len(columns)]
        flat = x.flatten(1).clone()
        flat[:, columns] = own * self.scale[columns] + self.centre[columns]
        return self.ends.log_prob(flat, x.flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        points = super().forward(self._spread_ends(x))
        return (points - self.middle) / self.unit if self.labels else points

    def inverse(self, features: Tensor) -> Tensor:
        if not self.labels:
            return self._cut_off(super().inverse(features))
        corners = features * self.unit + self.middle
        rows = corners.new_empty(*corners.shape[:-1], len(self.classes))
        scale, centre = self.scale[self.numbers], self.centre[self.numbers]
        rows[..., self.numbers] = corners[..., : len(self.numbers)] * scale + centre
        for index, block in zip(self.labels, self.blocks, strict=True):
            rows[..., index] = corners[..., block].argmax(-1).to(rows)
        return self._cut_off(rows)

    def spread(self, columns: Tensor) -> Tensor:
        """What is said of each column, such as whether it is missing, said of the numbers of its point."""
        return columns if self.plain else columns[..., self.owners]

    def label_log_prob(self, z: Tensor, x: Tensor, alpha: Tensor, sigma: Tensor) -> Tensor:
        """log p(labels of x | z) of noisy points z, by Bayes' rule with every label as probable: (n,)."""
        total = z.new_zeros(len(z))
        for index, block in zip(self.labels, self.blocks, strict=True):
            chances = self._evidence(block, z, alpha, sigma).log_softmax(-1)
            total = total + chances.gather(1, x[:, index, None].long())[:, 0]
        return total

    def label_means(self, logits: Tensor, z: Tensor, alpha: Tensor, sigma: Tensor) -> Tensor:
        """The mean of the point that was noised to z, whose labels have prior chances softmax(logits); numbers stay."""
        pieces = [logits[:, : len(self.numbers)]]
        for block in self.blocks:
            chances = (self._evidence(block, z, alpha, sigma) + logits[:, block]).softmax(-1)
            pieces.append((chances - self.middle[block]) / self.unit[block])
        return torch.cat(pieces, 1)

    def _evidence(self, block: slice, z: Tensor, alpha: Tensor, sigma: Tensor) -> Tensor:
        """log N(z; α corner, σ²) of each label, up to a constant: (n, labels).

        Of −‖z − α corner‖²/2σ² only what differs between labels is left: one number per label, not a pair of each two.
        """
        unit = self.unit[block]
        half = 0.5 * alpha * (1 - 2 * self.middle[block]) / unit
        return alpha * (z[:, block] - half) / (unit * sigma.square())

    def drawn(self, points: Tensor) -> Tensor:
        """Points whose labels are drawn with the chances softmax(their numbers); gradients pass as if they were soft.

        The largest of log p + Gumbel noise has the chances p.
        """
        if not self.labels:
            return points
        pieces = [points[:, : len(self.numbers)]]
        for block in self.blocks:
            uniform = ndtr(normal_like(points[:, block])).clamp(1e-6, 1 - 1e-6)
            soft = ((points[:, block] - (-uniform.log()).log()) / TEMPERATURE).softmax(-1)
            hard = torch.zeros_like(soft).scatter_(1, soft.argmax(1, keepdim=True), 1.0)
            corner = hard + soft - soft.detach()
            pieces.append((corner - self.middle[block]) / self.unit[block])
        return torch.cat(pieces, 1)

    @property
    def volume(self) -> Tensor:
        """log |∂x/∂z| of the numbers."""
        return self.scale.log().sum()

    @property
    def dense(self) -> int:
        """How many numbers of a point stand for numbers of the row."""
        return len(self.numbers) if self.labels else math.prod(self.shape)
