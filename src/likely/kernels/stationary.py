"""Kernels of the distance between rows: RBF, Matérn, rational quadratic. r = ‖(x − x′) / ℓ‖.

RBF exp(−r²/2) · Matérn ½ exp(−r), 3⁄2 (1 + √3 r) exp(−√3 r), 5⁄2 (1 + √5 r + 5r²/3) exp(−√5 r)
rational quadratic (1 + r²/2α)^(−α)
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..core.spec import require
from .base import Kernel, KernelModule, require_vectors
from .positive import Positive, columns_of, require_positive

__all__ = ["RBF", "Matern", "RationalQuadratic", "squared_distance"]

Lengths = float | tuple[float, ...]

ROUNDING = 16
"""How many units in the last place of ‖x‖² + ‖x′‖² their difference from 2x·x′ may be off."""

BLOCK = 256
"""Rows that are finished at a time, while they are in the cache."""


def squared_distance(x: Tensor, other: Tensor | None) -> Tensor:
    """‖xᵢ − x′ⱼ‖² of all pairs, by one matrix product about their mean; never negative, and exactly 0 for equal rows.

    What rounding alone can make of 0 is taken for 0: at 1e-16, a Matérn ½ kernel would be off by 1e-8.

    >>> squared_distance(torch.tensor([[0.0], [3.0]]), None)
    tensor([[0., 9.],
            [9., 0.]])
    """
    centre = x.detach().mean(0)
    rows = x - centre
    return _SquaredDistance.apply(rows, rows if other is None else other - centre)


class _SquaredDistance(torch.autograd.Function):
    """‖r‖² + ‖c‖² − 2r·c in place, and its gradient by two more products: no graph of n² numbers is held.

    ∂/∂rᵢ Σⱼ Gᵢⱼ ‖rᵢ − cⱼ‖² = 2 Σⱼ Gᵢⱼ (rᵢ − cⱼ)
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(rows: Tensor, columns: Tensor) -> Tensor:
        row_square, column_square = rows.square().sum(-1, keepdim=True), columns.square().sum(-1)
        rounding = ROUNDING * torch.finfo(rows.dtype).eps
        squares = rows @ columns.mT
        for start in range(0, len(rows), BLOCK):
            sums = row_square[start : start + BLOCK] + column_square
            part = squares[start : start + BLOCK].mul_(-2).add_(sums)
            part.masked_fill_(part <= rounding * sums, 0.0)
        return squares

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        rows, columns = ctx.saved_tensors
        of_rows = gradient.sum(1, keepdim=True) * rows - gradient @ columns
        of_columns = gradient.sum(0).unsqueeze(1) * columns - gradient.mT @ rows
        return 2 * of_rows, 2 * of_columns

    @staticmethod
    def jvp(ctx: Any, row_change: Tensor, column_change: Tensor) -> Tensor:  # type: ignore[override]
        rows, columns = ctx.saved_tensors
        alone = (rows * row_change).sum(-1, keepdim=True) + (columns * column_change).sum(-1)
        return 2 * (alone - row_change @ columns.mT - rows @ column_change.mT)


class _Stationary(Kernel):
    """Kernels that know rows by their scaled distance alone."""

    lengthscale: Lengths = 1.0

    def validate(self) -> None:
        require_positive(self, "lengthscale", several=True)
        self.check()

    def check(self) -> None:
        """What else a kernel asks of its values."""

    def build(self, x: Tensor) -> KernelModule:
        require_vectors(self, x)
        columns_of(self, self.lengthscale, x)
        return _Distance(self, x.shape[-1])  # type: ignore[arg-type]

    def shape_number(self) -> float | None:
        """A second positive number to learn beside the length scale, if there is one."""
        return None

    def of_square(self, square: Tensor, shape: Tensor | None) -> Tensor:
        """k as a function of r², which may be overwritten."""
        raise NotImplementedError


class _Distance(KernelModule):
    def __init__(self, kernel: RBF | Matern | RationalQuadratic, columns: int) -> None:
        super().__init__()
        self.kernel = kernel
        wide = kernel.ard and not isinstance(kernel.lengthscale, tuple)
        start = (kernel.lengthscale,) * columns if wide else kernel.lengthscale
        self.lengthscale = Positive(start, kernel.learn)  # type: ignore[arg-type]
        number = kernel.shape_number()
        self.shape = None if number is None else Positive(number, kernel.learn)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        scale = self.lengthscale().to(x.dtype)
        square = squared_distance(x / scale, None if other is None else other / scale)
        return self.kernel.of_square(square, None if self.shape is None else self.shape().to(x.dtype))

    def diagonal(self, x: Tensor) -> Tensor:
        return x.new_ones(len(x))

    def spec(self) -> Kernel:
        learned = {"lengthscale": self.lengthscale.number()}
        if self.shape is not None:
            learned["alpha"] = self.shape.number()
        return self.kernel.replace(**learned)


class RBF(_Stationary):
    """RBF(lengthscale=1.0, ard=False): exp(−‖x − x′‖² / 2ℓ²); infinitely smooth functions.

    `ard=True` learns a length scale for each column; several can also be given. `learn=False` holds them.

    >>> RBF().matrix([[0.0], [1.0]])[0, 1].log()
    tensor(-0.5000, dtype=torch.float64)
    """

    ard: bool = False
    learn: bool = True

    def of_square(self, square: Tensor, shape: Tensor | None) -> Tensor:
        return square.mul_(-0.5).exp_()


class Matern(_Stationary):
    """Matern(lengthscale=1.0, smoothness=2.5): functions that are ⌈smoothness⌉ − 1 times differentiable.

    >>> Matern(smoothness=0.5).matrix([[0.0], [1.0]])[0, 1].log()
    tensor(-1., dtype=torch.float64)
    """

    smoothness: float = 2.5
    ard: bool = False
    learn: bool = True

    def check(self) -> None:
        require(self.smoothness in (0.5, 1.5, 2.5), self, "smoothness", "0.5, 1.5 or 2.5")

    def of_square(self, square: Tensor, shape: Tensor | None) -> Tensor:
        # √ has no derivative at 0, where these kernels have their maximum: a tiny floor keeps gradients finite
        distance = square.clamp_min(1e-30).sqrt()
        if self.smoothness == 0.5:
            return (-distance).exp()
        if self.smoothness == 1.5:
            scaled = math.sqrt(3) * distance
            return (1 + scaled) * (-scaled).exp()
        scaled = math.sqrt(5) * distance
        return (1 + scaled + 5 / 3 * square) * (-scaled).exp()


class RationalQuadratic(_Stationary):
    """RationalQuadratic(lengthscale=1.0, alpha=1.0): a mixture of RBF kernels of many length scales.

    >>> RationalQuadratic(alpha=1.0).matrix([[0.0], [1.0]])[0, 1]
    tensor(0.6667, dtype=torch.float64)
    """

    alpha: float = 1.0
    ard: bool = False
    learn: bool = True

    def check(self) -> None:
        require_positive(self, "alpha")

    def shape_number(self) -> float:
        return self.alpha

    def of_square(self, square: Tensor, shape: Tensor | None) -> Tensor:
        assert shape is not None
        return (1 + square / (2 * shape)).pow(-shape)
