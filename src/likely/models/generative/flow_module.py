"""The density of a flow: change of variables from rows to noise.

    log p(x) = log p(z) + log |det ∂z/∂x|,      z = f(x; θ)

Columns of integers, or of other multiples of a step s, are spread uniformly over it: P(k) = 1/s ∫ s p(k + u) du over
|u| ≤ s/2, of which log s p(k + u) at a random u is, in the mean, a lower bound (Jensen).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.special import ndtr

from ...core.random import current_generator
from .base_density import BaseDensity
from .module import DensityModule
from .resampling import Resampled
from .transforms import Bijection, Units, VelocityField

__all__ = ["FlowModule"]

EXPECTED = 10.0
"""Negative rows of which not one is seen, if a column is to be positive by its nature: e⁻¹⁰ is the chance of that."""
WITHIN = 1 - 2**-20
"""The part of a step over which a number is spread: none comes to lie on the end of a column's support."""


class FlowModule(DensityModule):
    """Units, layers and a base density; `steps` has the columns (of rows laid flat) that are spread out.

    >>> from likely.models.generative.transforms import Affine, stack
    >>> module = FlowModule(stack(Affine(), (2,)), BaseDensity("normal", (2,)), (2,))
    >>> module(torch.zeros(3, 2)).shape, module.sample(5).shape
    (torch.Size([3]), torch.Size([5, 2]))
    """

    def __init__(
        self,
        layers: Bijection,
        base: BaseDensity,
        shape: tuple[int, ...],
        *,
        image: bool = False,
        steps: Mapping[int, float] | None = None,
    ) -> None:
        super().__init__()
        self.layers, self.base, self.shape, self.image = layers, base, shape, image
        self.units = Units((shape[0], *(1 for _ in shape[1:])))
        self.steps = dict(steps or {})
        self.log_step = sum(map(math.log, self.steps.values()))
        self.proposals = Resampled()
        self.alike = True
        """Whether training rows have equal weights."""

    @torch.no_grad()
    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        self.units.adapt(x, weight, self._floor(x))
        if isinstance(self.layers, VelocityField):
            self.layers.field.adapt(condition)
        self.alike = weight is None

    # --- from rows to noise -------------------------------------------------------------------------------------
    def standard(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Rows in units of the data, as the layers take them, and the log-determinant of that."""
        z, log_det = self.units(x)
        return (z if self.image else z.flatten(1)), log_det

    def raw(self, z: Tensor) -> Tensor:
        """The inverse of `standard`; what was spread is rounded."""
        x = self.units.inverse(z.reshape(len(z), *self.shape))
        return self._rounded(x) if self.steps else x

    def code(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """z of rows."""
        return self.layers(self.standard(x)[0], condition)[0]

    def decode(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        """Rows of z."""
        return self.raw(self.layers.inverse(z, condition))

    def path(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Rows on their way to z, in units of columns with variance 1: (steps, n, …). Columns are where z has them."""
        start, _ = self.standard(x)
        return torch.stack([start, *self.layers.steps(start, condition)])

    # --- the density --------------------------------------------------------------------------------------------
    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        x = self._spread(x) if self.steps else x
        start, log_unit = self.standard(x)
        if not isinstance(self.layers, VelocityField):
            z, log_det = self.layers(start, condition)
        elif self.layers.spec.training == "matching":
            z = self.base.sample(len(start), start)
            return self.layers.matching(start, z, condition, shared=self.alike and self.base.name == "normal")
        else:
            z, log_det = self.layers.stepped(start, condition)
        return self.base.log_prob(z) + (log_det + log_unit + self.log_step)

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Any:
        if not self.steps and not self.estimates:
            return self._log_prob(x, condition)
        rows = self._spread(x.repeat(draws, *(1 for _ in x.shape[1:])))
        told = None if condition is None else condition.repeat(draws, *(1 for _ in condition.shape[1:]))
        by_draw = self._log_prob(rows, told).unflatten(0, (draws, len(x)))
        if not self.estimates:
            return by_draw
        error = by_draw.std(0) / math.sqrt(draws) if draws > 1 else torch.full_like(by_draw[0], math.nan)
        return by_draw.mean(0), error  # Hutchinson's estimates are unbiased for log p, not for p

    @property
    def estimates(self) -> bool:
        """Whether log p is met by random numbers."""
        return isinstance(self.layers, VelocityField) and self.layers.spec.trace == "hutchinson"

    def _log_prob(self, x: Tensor, condition: Tensor | None) -> Tensor:
        start, log_unit = self.standard(x)
        z, log_det = self.layers(start, condition)
        return self.base.log_prob(z) + (log_det + log_unit + self.log_step)

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.drawn(count, condition)[0]

    def drawn(self, count: int, condition: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        z = self.base.sample(count, self.units.scale)
        return self.decode(z, condition), z

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        return self.proposals.complete(self, x, condition, draws)

    # --- helpers ------------------------------------------------------------------------------------------------
    def _spread(self, x: Tensor) -> Tensor:
        if not self.steps:
            return x
        u = torch.rand(x.shape, generator=current_generator(x.device), dtype=x.dtype, device=x.device) - 0.5
        return x + u * (WITHIN * self._step(x))

    def _rounded(self, x: Tensor) -> Tensor:
        step = self._step(x)
        return torch.where(step > 0, (x / torch.where(step > 0, step, 1.0)).round() * step, x)

    def _step(self, x: Tensor) -> Tensor:
        """The step of each column that is spread, 0 for others."""
        flat = x.new_zeros(x[0].numel())
        flat[list(self.steps)] = flat.new_tensor(list(self.steps.values()))
        return flat.reshape(x.shape[1:])

    def _floor(self, x: Tensor) -> Tensor | None:
        """Where the support of each column begins: 0 where none is negative and many should be, else −∞.

        Many are `EXPECTED` by a normal of the column's mean and variance: numbers far from 0 may be positive by chance,
        and later rows be not. Of counts 0 is within.
        """
        if len(self.shape) != 1:
            return None
        x = x.double()
        low, half = x.amin(0), 0.5 * self._step(x)
        below = len(x) * ndtr(-(x.mean(0) + half) / x.std(0).clamp_min(torch.finfo(x.dtype).tiny))
        support = (low > 0) | ((low == 0) & (half > 0))
        return torch.where(support & (below > EXPECTED), -half, -torch.inf)
