"""In which order of memory gradients come back: layers before are fast at the one that they went forward in.

Images (n, channels, height, width) lie with their positions together, channel by channel, or with channels last. An
operation that meets one order in its output and the other in its gradient takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Flatten", "OrderedGradient", "ordered"]


class OrderedGradient(torch.autograd.Function):
    """x itself, whose gradient comes back with channels last in memory if `last`, and in the usual order if not.

    >>> x = torch.zeros(1, 2, 3, 3, requires_grad=True)
    >>> [torch.autograd.grad(OrderedGradient.apply(x, last).sum(), x)[0].stride() for last in (True, False)]
    [(18, 1, 6, 2), (18, 9, 3, 1)]
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, last: bool) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, bool], output: Tensor) -> None:
        """Only the order is kept."""
        ctx.last = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return gradient.movedim(1, -1).contiguous().movedim(-1, 1) if ctx.last else gradient.contiguous(), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:  # type: ignore[override]
        return tangent.view_as(tangent)


def ordered(x: Tensor) -> Tensor:
    """x itself, whose gradient comes back with channels last in memory if x is an image that has them there.

    >>> x = torch.zeros(1, 2, 3, 3, requires_grad=True).to(memory_format=torch.channels_last)
    >>> torch.autograd.grad(ordered(x).mean(), x)[0].stride()
    (18, 1, 6, 2)
    """
    last = x.ndim == 4 and x.stride(1) == 1
    same: Tensor = OrderedGradient.apply(x, True) if last else x  # type: ignore[no-untyped-call]
    return same


class Flatten(nn.Flatten):
    """(n, channels, *positions) → (n, channels·positions); the gradient lies in memory as the input did.

    >>> Flatten()(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 48])
    """

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(ordered(input))
