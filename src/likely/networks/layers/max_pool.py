"""Max pooling of blocks that do not overlap: y[p] = max over the f × f positions of block p.

What torch has for it gains nothing by bfloat16. On few threads, images in bfloat16 with channels last in memory go
through a compiled loop of ours: its way forward takes half of torch's time, the way back an eighth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from .halves import loops_take

__all__ = ["max_pool"]

LARGEST = 128
"""Factors up to which the place of a maximum in its block is an integer of 16 bits."""


def max_pool(x: Tensor, factor: int) -> Tensor:
    """The maximum of each block of an image (n, channels, height, width); positions that fill no block are left out.

    >>> max_pool(torch.arange(16.0).view(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    able = x.ndim == 4 and factor <= min(LARGEST, *x.shape[2:]) and loops_take(x)
    if able and x.is_contiguous(memory_format=torch.channels_last):
        pooled: Tensor = _MaxPool.apply(x, factor)  # type: ignore[no-untyped-call]
        return pooled
    return functional.max_pool2d(x, factor)


class _MaxPool(Function):
    """`max_pool` in bfloat16 by compiled loops; derivatives of higher order are torch's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: int) -> Tensor:  # type: ignore[override]
        from .compiled.max_pool_loop import pooled  # only where it is needed: numba loads slowly

        rows, channels, *sides = x.shape
        size = (rows, channels, *(side // factor for side in sides))
        out = torch.empty(size, dtype=x.dtype, memory_format=torch.channels_last)
        place = torch.empty(size, dtype=torch.int16, memory_format=torch.channels_last)
        pooled(_bits(x), factor, _bits(out), place.movedim(1, -1).numpy())
        ctx.save_for_backward(x, place)
        ctx.factor = factor
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        x, place = ctx.saved_tensors
        if torch.is_grad_enabled():
            again = functional.max_pool2d(x, ctx.factor)
            return torch.autograd.grad(again, x, gradient, create_graph=True)[0], None
        from .compiled.max_pool_loop import spread_back

        whole = all(side % ctx.factor == 0 for side in x.shape[2:])
        by_x = torch.empty_like(x) if whole else torch.zeros_like(x)
        last = gradient.contiguous(memory_format=torch.channels_last)
        spread_back(_bits(last), place.movedim(1, -1).numpy(), ctx.factor, _bits(by_x))
        return by_x, None


def _bits(x: Tensor) -> np.ndarray:
    """Numbers in bfloat16 with channels last in memory, as their bits (n, height, width, channels)."""
    return x.detach().movedim(1, -1).view(torch.int16).numpy()
