"""Batch norm over the rows of a batch, as one function: γ·(x − E[x])/√(V[x] + ε) + β.

What torch has for it takes as long in bfloat16 as in float32. On few threads, numbers in bfloat16 go through a compiled
loop of ours, which takes a quarter of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from .halves import loops_take

__all__ = ["batch_norm"]

LINE = 512
"""Numbers, at most, of the rows that the loop takes as one; a power of 2."""


def batch_norm(
    x: Tensor,
    averages: tuple[Tensor | None, Tensor | None],
    affine: tuple[Tensor | None, Tensor | None],
    momentum: float,
    eps: float,
    *,
    rectified: bool = False,
) -> Tensor:
    """Each channel of x (n, channels) over the rows, and what of it is positive if `rectified`.

    `affine` are γ and β; the running `averages` of E and V move on by `momentum`, in place.

    >>> averages = torch.zeros(1), torch.ones(1)
    >>> batch_norm(torch.tensor([[1.0], [3.0]]), averages, (torch.ones(1), torch.zeros(1)), 0.5, 1e-5).round().tolist()
    [[-1.0], [1.0]]
    >>> averages
    (tensor([1.]), tensor([1.5000]))
    """
    if eps > 0 and _compiles(x, *averages, *affine):
        normal: Tensor = _BatchNorm.apply(x, *affine, averages, momentum, eps, rectified)  # type: ignore[no-untyped-call]
        return normal
    out = functional.batch_norm(x, *averages, *affine, True, momentum, eps)
    return out.relu() if rectified else out


def _compiles(x: Tensor, *others: Tensor | None) -> bool:
    """Whether the loop takes them: on a processor, outside of transformations of functions."""
    parts = [part for part in others if part is not None and part.dtype == torch.float32 and part.shape == x.shape[1:]]
    return len(parts) == len(others) and loops_take(x, *parts)


class _BatchNorm(Function):
    """`batch_norm` in bfloat16 by compiled loops; derivatives of higher order are torch's."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gain: Tensor,
        shift: Tensor,
        averages: tuple[Tensor, Tensor],
        momentum: float,
        eps: float,
        rectified: bool,
    ) -> Tensor:
        from .compiled.batch_norm_loop import standardise  # only where it is needed: numba loads slowly

        x = x.contiguous()
        out, of = torch.empty_like(x), gain.new_empty(3, len(gain))
        standardise(_lines(x), _numbers(gain, shift), eps, rectified, _lines(out), of.numpy())
        averages[0].lerp_(of[0], momentum)
        averages[1].lerp_(of[1] * (len(x) / (len(x) - 1)), momentum)
        ctx.save_for_backward(x, gain, shift)
        ctx.of, ctx.eps, ctx.rectified = of, eps, rectified
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, *affine = ctx.saved_tensors
        if torch.is_grad_enabled():
            needed = ctx.needs_input_grad[:3]
            return *_differentiable(gradient, (x, *affine), needed, ctx.eps, ctx.rectified), *[None] * 4
        from .compiled.batch_norm_loop import differentiate

        by_x, by_affine = torch.empty_like(x), torch.empty_like(ctx.of[:2])
        lines = _lines(gradient.contiguous()), _lines(x)
        differentiate(*lines, _numbers(*affine), ctx.of.numpy(), ctx.rectified, _lines(by_x), by_affine.numpy())
        return by_x, *by_affine, *[None] * 4


def _differentiable(
    gradient: Tensor, inputs: tuple[Tensor, ...], needed: tuple[bool, ...], eps: float, rectified: bool
) -> list[Tensor | None]:
    """The gradients of x, γ and β, with a graph of their own."""
    x, gain, shift = inputs
    out = functional.batch_norm(x, None, None, gain, shift, True, 0.0, eps)
    wanted = [part for part, needs in zip(inputs, needed, strict=True) if needs]
    of_wanted = iter(torch.autograd.grad(out.relu() if rectified else out, wanted, gradient, create_graph=True))
    return [next(of_wanted) if needs else None for needs in needed]


def _lines(rows: Tensor) -> np.ndarray:
    """Numbers in bfloat16 (n, channels) as their bits, as many rows to a line as divide them, up to a power of 2."""
    many = math.gcd(len(rows), 1 << max(0, (LINE // rows.shape[1]).bit_length() - 1))
    return rows.detach().view(torch.uint16).view(-1, many * rows.shape[1]).numpy()


def _numbers(*tensors: Tensor) -> tuple[np.ndarray, ...]:
    return tuple(part.detach().contiguous().numpy() for part in tensors)
