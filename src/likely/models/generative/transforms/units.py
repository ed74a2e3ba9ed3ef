"""Units: numbers in units of the training rows, the first layer of every flow.

    z = (x − centre)/scale,   and   z = asinh((x − centre)/scale)   for columns with heavy tails

Nothing here is learned by gradients. A column whose tails are heavy (amounts over many orders of magnitude) would have
rows that a normal base gives probability 0; the asinh draws them in, and is exactly inverted by the sinh.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ....networks.layers.standardise import statistics
from .bijection import Bijection, per_row

__all__ = ["Units"]

WIDTH = 1e-3
"""The scale of a column that has one value in all rows, as a fraction of its size."""


class Units(Bijection):
    """Columns in their units; `columns` is a shape that broadcasts against rows, (d,) or (channels, 1, 1).

    >>> units = Units((2,))
    >>> units.adapt(torch.tensor([[100.0, 1.0], [300.0, 3.0]]), None)
    >>> units(torch.tensor([[100.0, 3.0]]))[0]
    tensor([[-1.,  1.]])
    """

    centre: Tensor
    scale: Tensor
    heavy: Tensor

    def __init__(self, columns: tuple[int, ...]) -> None:
        super().__init__()
        self.columns = columns
        self.register_buffer("centre", torch.zeros(columns))
        self.register_buffer("scale", torch.ones(columns))
        self.register_buffer("heavy", torch.zeros(columns))
        self.bends = True
        """Whether a column may be heavy; asinh takes longer than the rest of a small layer."""

    @torch.no_grad()
    def adapt(self, x: Tensor, weight: Tensor | None) -> None:
        """Centre and scale of training rows (n, *shape)."""
        table = x.double().movedim(1, -1).flatten(0, -2)
        rows = None if weight is None else weight.double().repeat_interleave(len(table) // len(x))
        share = torch.full((len(table),), 1 / len(table), dtype=torch.float64) if rows is None else rows / rows.sum()
        centre = share @ table
        scale = (share @ (table - centre).square()).sqrt()
        constant = scale <= 1e-9 * table.abs().amax(0)
        known = statistics(table, (table.shape[1],), rows)
        if known is not None and known.bend is not None:
            bent = known.bend > 0
            centre, scale = torch.where(bent, known.centre, centre), torch.where(bent, known.scale, scale)
            self.heavy.copy_(bent.reshape(self.columns))
        self.bends = bool(self.heavy.any())
        self.centre.copy_(centre.reshape(self.columns))
        scale = torch.where(constant, WIDTH * centre.abs().clamp_min(WIDTH), scale)
        self.scale.copy_(scale.reshape(self.columns))

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z = (x - self.centre) / self.scale
        log_det = -self.scale.log().sum() * x.shape[1 + len(self.columns[:1]) :].numel()
        if not self.bends:
            return z, log_det
        heavy = self.heavy > 0
        log_gradient = torch.where(heavy, -torch.hypot(z, torch.ones_like(z)).log(), 0.0)  # no square that overflows
        return torch.where(heavy, z.asinh(), z), per_row(log_gradient) + log_det

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        wide = torch.where(self.heavy > 0, z.clamp(-80, 80).sinh(), z) if self.bends else z
        return torch.addcmul(self.centre, wide, self.scale)

    def _load_from_state_dict(self, state_dict: Any, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, *rest)
        self.bends = self.heavy.is_meta or bool(self.heavy.any())
