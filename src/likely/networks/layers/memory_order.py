"""In which order of memory gradients come back: layers before are fast at the one that they went forward in.

Images (n, channels, height, width) lie with their positions together, channel by channel, or with channels last. An
operation that meets one order in its output and the other in its gradient takes ten times as long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Flatten", "OrderedGradient"]


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


class Flatten(nn.Flatten):
    """(n, channels, *positions) → (n, channels·positions); the gradient lies in memory as the input did.

    >>> Flatten()(torch.zeros(2, 3, 4, 4)).shape
    torch.Size([2, 48])
    """

    def forward(self, input: Tensor) -> Tensor:
        last = input.ndim == 4 and input.stride(1) == 1
        return super().forward(OrderedGradient.apply(input, True) if last else input)
