"""Linear and polynomial kernels: functions of x·x′.

linear x·x′,   polynomial (x·x′ + c)^degree
"""

from __future__ import annotations

from torch import Tensor

from ..core.spec import require
from .base import Kernel, KernelModule, require_vectors
from .positive import Positive, require_positive

__all__ = ["Linear", "Polynomial"]


class Linear(Kernel):
    """Linear(variance=1.0): s·x·x′, the kernel of linear regression with weights of variance s and no bias.

    Add `Constant()` for a bias.

    >>> Linear().matrix([[1.0, 2.0]], [[3.0, 4.0]])
    tensor([[11.]], dtype=torch.float64)
    """

    variance: float = 1.0
    learn: bool = True

    @property
    def affine(self) -> bool:
        return True

    def validate(self) -> None:
        require_positive(self, "variance")

    def build(self, x: Tensor) -> KernelModule:
        require_vectors(self, x)
        return _Dot(self)


class Polynomial(Kernel):
    """Polynomial(degree=3, offset=1.0): (x·x′ + c)^degree, all products of up to `degree` columns.

    >>> Polynomial(degree=2, offset=1.0).matrix([[1.0]], [[2.0]])
    tensor([[9.]], dtype=torch.float64)
    """

    degree: int = 3
    offset: float = 1.0
    learn: bool = True

    def validate(self) -> None:
        require(self.degree >= 1, self, "degree", "an integer above 0")
        require_positive(self, "offset")

    def build(self, x: Tensor) -> KernelModule:
        require_vectors(self, x)
        return _Power(self)


def _products(x: Tensor, other: Tensor | None) -> Tensor:
    """xᵢ·x′ⱼ of all pairs."""
    return x @ (x if other is None else other).mT


class _Dot(KernelModule):
    def __init__(self, kernel: Linear) -> None:
        super().__init__()
        self.kernel = kernel
        self.variance = Positive(kernel.variance, kernel.learn)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.variance().to(x.dtype) * _products(x, other)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.variance().to(x.dtype) * x.square().sum(-1)

    def spec(self) -> Kernel:
        return self.kernel.replace(variance=self.variance.number())


class _Power(KernelModule):
    def __init__(self, kernel: Polynomial) -> None:
        super().__init__()
        self.kernel = kernel
        self.offset = Positive(kernel.offset, kernel.learn)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return (_products(x, other) + self.offset().to(x.dtype)).pow(self.kernel.degree)

    def diagonal(self, x: Tensor) -> Tensor:
        return (x.square().sum(-1) + self.offset().to(x.dtype)).pow(self.kernel.degree)

    def spec(self) -> Kernel:
        return self.kernel.replace(offset=self.offset.number())
