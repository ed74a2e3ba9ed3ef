"""What a kernel is: a covariance function k(x, x′), positive semidefinite on any set of rows.

K[i, j] = k(xᵢ, x′ⱼ)

A kernel is a spec, so it holds what a person chose; its hyperparameters (length scales, variances) are where learning
starts. `build` makes the module that holds them as parameters, and the module's `spec` is the kernel with the learned
hyperparameters.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import DataError
from ..core.spec import Spec

__all__ = ["Kernel", "KernelModule", "require_vectors"]


class KernelModule(nn.Module):
    """k with its hyperparameters as free parameters. Rows are (n, d) tensors, or (n, *shape) for network kernels."""

    def __call__(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """K of shape (n, m); `other=None` is x itself, and the matrix is then exactly symmetric.

        Here, for every kernel: no library promises that xᵢ·xⱼ and xⱼ·xᵢ, or two equal numbers at different positions of
        an array, are rounded alike.
        """
        matrix: Tensor = super().__call__(x, other)
        return 0.5 * (matrix + matrix.mT) if other is None else matrix

    @abstractmethod
    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """K of shape (n, m), symmetric up to rounding where `other` is None."""

    def diagonal(self, x: Tensor) -> Tensor:
        """k(xᵢ, xᵢ) of shape (n,), without the rest of the matrix. An override need not go row by row."""
        return torch.cat([self(row.unsqueeze(0)).reshape(1) for row in x])

    @abstractmethod
    def spec(self) -> Kernel:
        """The kernel with the present values of its hyperparameters."""


class Kernel(Spec, axis="kernel"):
    """A covariance function. `k1 + k2`, `k1 * k2` and `2.0 * k` are kernels too.

    >>> import torch
    >>> from likely.kernels import RBF, White
    >>> (2.0 * RBF(lengthscale=0.5) + White(0.1)).matrix(torch.tensor([[0.0], [0.5]])).round(decimals=4)
    tensor([[2.1000, 1.2131],
            [1.2131, 2.1000]], dtype=torch.float64)
    """

    @property
    def affine(self) -> bool:
        """Whether k(·, x′) is linear, plus a constant, for every x′: so are then all functions of the kernel."""
        return False

    def build(self, x: Tensor) -> KernelModule:
        """A module for rows like these (their shape counts, and for some kernels their number of columns)."""
        raise NotImplementedError(f"{type(self).__name__} must implement build()")

    @torch.no_grad()
    def matrix(self, x: Any, other: Any = None) -> Tensor:
        """K of rows x, or of x with other rows: (n, m), in float64."""
        rows, against = _rows(x, "x"), None if other is None else _rows(other, "other")
        if against is not None and against.shape[1:] != rows.shape[1:]:
            raise DataError(f"x has shape {tuple(rows.shape)} and other {tuple(against.shape)}; rows must be alike.")
        return self.build(rows).double()(rows, against)

    def __add__(self, other: Any) -> Kernel:
        from .algebra import Sum

        return Sum(_parts(self, Sum) + _parts(_as_kernel(other), Sum))

    def __radd__(self, other: Any) -> Kernel:
        return _as_kernel(other) + self

    def __mul__(self, other: Any) -> Kernel:
        from .algebra import Product, Scaled

        if isinstance(other, Real) and not isinstance(other, bool):
            if isinstance(self, Scaled) and self.learn:  # one learned variance, not two of which the product counts
                return self.replace(variance=self.variance * float(other))
            return Scaled(self, float(other))
        return Product(_parts(self, Product) + _parts(_as_kernel(other), Product))

    def __rmul__(self, other: Any) -> Kernel:
        return self * other


def _as_kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        from .constant import Constant

        return Constant(float(value))
    raise TypeError(f"a kernel and a {type(value).__name__} cannot be combined")


def require_vectors(kernel: Kernel, x: Tensor) -> None:
    """Refuse rows that are not vectors, for kernels that compare columns."""
    if x.ndim != 2:
        raise DataError(
            f"{type(kernel).__name__} compares vectors: rows (n, d). Found shape {tuple(x.shape)}; "
            "flatten the rows, or use a network kernel such as Deep."
        )


def _rows(values: Any, name: str) -> Tensor:
    rows = values.detach().double() if isinstance(values, Tensor) else torch.from_numpy(np.array(values, np.float64))
    if rows.ndim < 2:
        raise DataError(f"{name} has shape {tuple(rows.shape)}; a kernel needs rows: (n, d).")
    return rows


def _parts(kernel: Kernel, kind: Any) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)
