"""The kernel matrix of many rows and its gradient, a few rows at a time.

    K[i, j] = k(xᵢ, xⱼ),   ∂⟨G, K⟩/∂θ = Σᵢⱼ Gᵢⱼ ∂k(xᵢ, xⱼ)/∂θ

K is symmetric, so half of it is computed; no graph of n² numbers is held, and the work stays in the cache.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import KernelModule

__all__ = ["gram", "gram_gradient"]

BLOCK = 256
"""Rows at a time: 256 × 2,000 numbers fit in the cache."""


@torch.no_grad()
def gram(kernel: KernelModule, x: Tensor) -> Tensor:
    """K (n, n), exactly symmetric.

    >>> from likely.kernels import White
    >>> rows = torch.zeros(2, 1, dtype=torch.float64)
    >>> gram(White(1.0).build(rows), rows)
    tensor([[1., 0.],
            [0., 1.]], dtype=torch.float64)
    """
    count = len(x)
    matrix = torch.empty(count, count, dtype=x.dtype)
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        rows = kernel(x[start:end], x[:end])
        matrix[start:end, :start] = rows[:, :start]
        matrix[:start, start:end] = rows[:, :start].mT
        corner = rows[:, start:]
        matrix[start:end, start:end] = 0.5 * (corner + corner.mT)
    matrix.diagonal().copy_(kernel.diagonal(x))  # what a row has with itself alone, such as white noise, is here
    return matrix


def gram_gradient(kernel: KernelModule, x: Tensor, weight: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    """∂⟨G, K⟩/∂θ of each parameter, for a symmetric G (n, n)."""
    total = [torch.zeros_like(parameter) for parameter in parameters]
    if not parameters:
        return total
    for start in range(0, len(x), BLOCK):
        end = min(start + BLOCK, len(x))
        block = weight[start:end, :end].clone()
        block[:, :start] *= 2  # the other half
        block[:, start:].fill_diagonal_(0.0)
        with torch.enable_grad():
            rows = kernel(x[start:end], x[:end])
        _add(total, rows, block, parameters)
    with torch.enable_grad():
        diagonal = kernel.diagonal(x)
    _add(total, diagonal, weight.diagonal(), parameters)
    return total


def _add(total: list[Tensor], values: Tensor, weight: Tensor, parameters: list[nn.Parameter]) -> None:
    if not values.requires_grad:
        return
    with torch.enable_grad():  # as a sum: a first call with grad_outputs has torch load a second of other modules
        total_value = (values * weight).sum()
    gradients = torch.autograd.grad(total_value, parameters, allow_unused=True)
    for own, gradient in zip(total, gradients, strict=True):
        if gradient is not None:
            own += gradient
