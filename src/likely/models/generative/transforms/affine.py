"""Affine: shift and scale. In couplings this is RealNVP, in an autoregressive order MAF.

z = x · exp(s) + t,   log ∂z/∂x = s,   s = limit · tanh(raw/limit)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ....core.spec import require
from .base import _Elementwise

__all__ = ["Affine"]


class Affine(_Elementwise):
    """Shift and scale, whose logarithm lies within ± `limit`: no layer can fold or blow up a row.

    >>> z, log_gradient = Affine(2.0).forward(torch.tensor([[3.0]]), torch.tensor([[1.0, 0.0]]))
    >>> z, log_gradient
    (tensor([[4.]]), tensor([[0.]]))
    """

    limit: float = 2.0

    def validate(self) -> None:
        """The limit is positive."""
        require(0 < self.limit <= 20, self, "limit", "above 0 and at most 20")

    @property
    def size(self) -> int:
        return 2

    def columns(self, count: int) -> Sequence[int]:
        return [*range(count), *range(count)]

    def forward(self, x: Tensor, raw: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = self._parameters(raw)
        return torch.addcmul(shift, x, log_scale.exp()), log_scale

    def inverse(self, z: Tensor, raw: Tensor) -> Tensor:
        shift, log_scale = self._parameters(raw)
        return (z - shift) / log_scale.exp()

    def _parameters(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        shift, bend = raw.chunk(2, -1)
        return shift, (bend / self.limit).tanh() * self.limit  # divided first: tanh of every second number is slow
