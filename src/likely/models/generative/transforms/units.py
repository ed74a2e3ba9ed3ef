"""Units: numbers in units of the training rows, the first layer of every flow.

    z = (x − centre)/scale,   and   z = asinh((x − centre)/scale)   for columns with heavy tails

Nothing here is learned by gradients. A column whose tails are heavy (amounts over many orders of magnitude) would have
rows that a normal base gives probability 0; the asinh draws them in, and is exactly inverted by the sinh.

A column whose support begins at a floor, such as 0 for positive numbers, is first taken to the whole line,

    y = bend · softplus⁻¹((x − floor)/bend),      softplus(t) = log(1 + eᵗ)

which is log x near the floor and x far from it: new rows stay above the floor, below it p(x) = 0.
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
    floor: Tensor
    bend: Tensor

    def __init__(self, columns: tuple[int, ...]) -> None:
        super().__init__()
        self.columns = columns
        self.register_buffer("centre", torch.zeros(columns))
        self.register_buffer("scale", torch.ones(columns))
        self.register_buffer("heavy", torch.zeros(columns))
        self.register_buffer("floor", torch.zeros(columns))
        self.register_buffer("bend", torch.zeros(columns))  # 0 where there is no floor
        self.bends, self.begins = True, True
        """Whether a column may be heavy, or have a floor; both take longer than the rest of a small layer."""

    @torch.no_grad()
    def adapt(self, x: Tensor, weight: Tensor | None, floor: Tensor | None = None) -> None:
        """Centre and scale of training rows (n, *shape), and where the support of columns begins, if it does."""
        table = x.double().movedim(1, -1).flatten(0, -2)
        rows = None if weight is None else weight.double().repeat_interleave(len(table) // len(x))
        share = torch.full((len(table),), 1 / len(table), dtype=torch.float64) if rows is None else rows / rows.sum()
        if floor is not None:
            bend = share @ (table - floor)  # ∞ where there is no floor
            self.floor.copy_(torch.where(floor.isfinite(), floor, 0.0).reshape(self.columns))
            self.bend.copy_(torch.where(floor.isfinite(), bend, 0.0).reshape(self.columns))
            table = _to_line(table, self.floor.double().ravel(), self.bend.double().ravel())[0]
        self.begins = bool(self.bend.any())
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
        log_det: Tensor = -self.scale.log().sum() * x.shape[1 + len(self.columns[:1]) :].numel()
        if self.begins:
            x, log_gradient = _to_line(x, self.floor, self.bend)
            log_det = per_row(log_gradient) + log_det
        z = (x - self.centre) / self.scale
        if not self.bends:
            return z, log_det
        heavy = self.heavy > 0
        log_gradient = torch.where(heavy, -torch.hypot(z, torch.ones_like(z)).log(), 0.0)  # no square that overflows
        return torch.where(heavy, z.asinh(), z), per_row(log_gradient) + log_det

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        wide = torch.where(self.heavy > 0, z.clamp(-80, 80).sinh(), z) if self.bends else z
        x = torch.addcmul(self.centre, wide, self.scale)
        if not self.begins:
            return x
        begins = self.bend > 0
        above = self.bend * torch.logaddexp(x / torch.where(begins, self.bend, 1.0), torch.zeros_like(x))
        return torch.where(begins, self.floor + above.clamp_min(torch.finfo(x.dtype).tiny), x)

    def _load_from_state_dict(self, state_dict: Any, *rest: Any) -> None:
        super()._load_from_state_dict(state_dict, *rest)
        self.bends = self.heavy.is_meta or bool(self.heavy.any())
        self.begins = self.bend.is_meta or bool(self.bend.any())


def _to_line(x: Tensor, floor: Tensor, bend: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers above their floor as numbers of any size, and the logarithm of the gradient; −∞ below the floor."""
    begins = bend > 0
    t = torch.where(begins, (x - floor) / torch.where(begins, bend, 1.0), 1.0)
    above = t > 0
    t = torch.where(above, t, 1.0)
    log_part = torch.log(-torch.expm1(-t))  # log(1 − e⁻ᵗ), so that softplus⁻¹(t) = t + this
    line = torch.where(begins, bend * (t + log_part), x)
    return line, torch.where(begins, torch.where(above, -log_part, -torch.inf), 0.0)
