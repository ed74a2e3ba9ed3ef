"""Periodic: functions that repeat themselves.

k(x, x′) = exp(−2 Σⱼ sin²(π (xⱼ − x′ⱼ) / p) / ℓ²)

Each column goes round a circle, φ(xⱼ) = (cos 2πxⱼ/p, sin 2πxⱼ/p), and 4 sin²(π (xⱼ − x′ⱼ) / p) is the squared chord
between two points of it: the kernel is the RBF of φ.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .base import Kernel, KernelModule, require_vectors
from .positive import Positive, require_positive
from .stationary import squared_distance

__all__ = ["Periodic"]


class Periodic(Kernel):
    """Periodic(lengthscale=1.0, period=1.0); both are learned.

    >>> Periodic(period=2.0).matrix([[0.0], [2.0]])[0, 1].round(decimals=12)
    tensor(1., dtype=torch.float64)
    """

    lengthscale: float = 1.0
    period: float = 1.0
    learn: bool = True

    def validate(self) -> None:
        require_positive(self, "lengthscale")
        require_positive(self, "period")

    def build(self, x: Tensor) -> KernelModule:
        require_vectors(self, x)
        return _Periodic(self)


class _Periodic(KernelModule):
    def __init__(self, kernel: Periodic) -> None:
        super().__init__()
        self.kernel = kernel
        self.lengthscale = Positive(kernel.lengthscale, kernel.learn)
        self.period = Positive(kernel.period, kernel.learn)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        chords = squared_distance(self._circles(x), None if other is None else self._circles(other))
        return chords.mul(-0.5 / self.lengthscale().to(x.dtype).square()).exp_()

    def _circles(self, x: Tensor) -> Tensor:
        angle = x * (2 * math.pi / self.period().to(x.dtype))
        return torch.cat([angle.cos(), angle.sin()], -1)

    def diagonal(self, x: Tensor) -> Tensor:
        return x.new_ones(len(x))

    def spec(self) -> Kernel:
        return self.kernel.replace(lengthscale=self.lengthscale.number(), period=self.period.number())
