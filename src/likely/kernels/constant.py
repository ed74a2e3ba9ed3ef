"""Constant and White: k(x, x′) = c for all rows, and k(x, x′) = c if they are the same row, else 0."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import Kernel, KernelModule
from .positive import Positive, require_positive

__all__ = ["Constant", "White"]


class Constant(Kernel):
    """Constant(variance=1.0): functions that are constant; added to another kernel, an unknown mean.

    >>> Constant(2.0).matrix([[0.0], [1.0]])
    tensor([[2., 2.],
            [2., 2.]], dtype=torch.float64)
    """

    variance: float = 1.0
    learn: bool = True

    @property
    def affine(self) -> bool:
        return True

    def validate(self) -> None:
        require_positive(self, "variance")

    def build(self, x: Tensor) -> KernelModule:
        return _Constant(self)


class White(Kernel):
    """White(variance=1.0): noise that is new at every row; 0 between different sets of rows.

    >>> White(2.0).matrix([[0.0], [0.0]])
    tensor([[2., 0.],
            [0., 2.]], dtype=torch.float64)
    """

    variance: float = 1.0
    learn: bool = True

    @property
    def affine(self) -> bool:
        return True

    def validate(self) -> None:
        require_positive(self, "variance")

    def build(self, x: Tensor) -> KernelModule:
        return _White(self)


class _Constant(KernelModule):
    def __init__(self, kernel: Constant | White) -> None:
        super().__init__()
        self.kernel = kernel
        self.variance = Positive(kernel.variance, kernel.learn)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.variance().to(x.dtype) * x.new_ones(len(x), len(x if other is None else other))

    def diagonal(self, x: Tensor) -> Tensor:
        return self.variance().to(x.dtype) * x.new_ones(len(x))

    def spec(self) -> Kernel:
        return self.kernel.replace(variance=self.variance.number())


class _White(_Constant):
    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        if other is not None:
            return x.new_zeros(len(x), len(other))
        return self.variance().to(x.dtype) * torch.eye(len(x), dtype=x.dtype, device=x.device)
