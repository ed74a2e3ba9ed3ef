"""Sums, products and multiples of kernels, which are kernels again.

(k₁ + k₂)(x, x′) = k₁(x, x′) + k₂(x, x′),   (k₁·k₂)(x, x′) = k₁(x, x′)·k₂(x, x′),   (s·k)(x, x′) = s·k(x, x′)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul

from torch import Tensor, nn

from ..core.spec import require
from .base import Kernel, KernelModule
from .positive import Positive, require_positive

__all__ = ["Product", "Scaled", "Sum"]


class _Several(Kernel):
    kernels: tuple[Kernel, ...] = ()

    def validate(self) -> None:
        known = isinstance(self.kernels, tuple) and all(isinstance(kernel, Kernel) for kernel in self.kernels)
        require(known and len(self.kernels) > 0, self, "kernels", "one kernel or more")

    def build(self, x: Tensor) -> KernelModule:
        return _Joined(self, [kernel.build(x) for kernel in self.kernels], self.join())

    def join(self) -> Callable[[Tensor, Tensor], Tensor]:
        """How the matrices become one."""
        raise NotImplementedError


class _Joined(KernelModule):
    def __init__(self, kernel: _Several, parts: list[KernelModule], join: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.kernel, self.join = kernel, join
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return reduce(self.join, [part(x, other) for part in self.parts])

    def diagonal(self, x: Tensor) -> Tensor:
        return reduce(self.join, [part.diagonal(x) for part in self.parts])  # type: ignore[operator]

    def spec(self) -> Kernel:
        return self.kernel.replace(kernels=tuple(part.spec() for part in self.parts))  # type: ignore[operator]


class Sum(_Several):
    """Sum((k₁, k₂, …)), as `k1 + k2` writes it.

    >>> from likely.kernels import RBF, White
    >>> RBF() + White() == Sum((RBF(), White()))
    True
    """

    @classmethod
    def example(cls) -> Sum:
        """Two parts."""
        from .stationary import RBF, Matern

        return cls((RBF(), Matern()))

    @property
    def affine(self) -> bool:
        return all(kernel.affine for kernel in self.kernels)

    def join(self) -> Callable[[Tensor, Tensor], Tensor]:
        return add


class Product(_Several):
    """Product((k₁, k₂, …)), as `k1 * k2` writes it.

    >>> from likely.kernels import RBF, Periodic
    >>> RBF() * Periodic() == Product((RBF(), Periodic()))
    True
    """

    @classmethod
    def example(cls) -> Product:
        """Two parts."""
        from .stationary import RBF, Matern

        return cls((RBF(), Matern()))

    def join(self) -> Callable[[Tensor, Tensor], Tensor]:
        return mul


class Scaled(Kernel):
    """Scaled(kernel, variance=1.0), as `2.0 * k` writes it; the variance is learned.

    >>> from likely.kernels import RBF
    >>> 2.0 * RBF() == Scaled(RBF(), 2.0)
    True
    """

    kernel: Kernel
    variance: float = 1.0
    learn: bool = True

    @classmethod
    def example(cls) -> Scaled:
        """Half of a kernel."""
        from .stationary import RBF

        return cls(RBF(), 0.5)

    @property
    def affine(self) -> bool:
        return self.kernel.affine

    def validate(self) -> None:
        require(isinstance(self.kernel, Kernel), self, "kernel", "a kernel")
        require_positive(self, "variance")

    def build(self, x: Tensor) -> KernelModule:
        return _Multiple(self, self.kernel.build(x))


class _Multiple(KernelModule):
    def __init__(self, kernel: Scaled, inner: KernelModule) -> None:
        super().__init__()
        self.kernel, self.inner = kernel, inner
        self.variance = Positive(kernel.variance, kernel.learn)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.variance().to(x.dtype) * self.inner(x, other)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.variance().to(x.dtype) * self.inner.diagonal(x)

    def spec(self) -> Kernel:
        return self.kernel.replace(kernel=self.inner.spec(), variance=self.variance.number())
