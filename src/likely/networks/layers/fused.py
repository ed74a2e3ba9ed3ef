"""Layers one after the other, two of them as one operation where the first can do the work of the second."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["Fused"]


class Fused(nn.Sequential):
    """fₙ ∘ … ∘ f₁, as `nn.Sequential`; a layer that offers `rectified(x)` does the work of a ReLU behind it too.

    Layers with hooks are called one by one.

    >>> import torch
    >>> from likely.networks.layers import BatchNorm
    >>> layers, x = (BatchNorm(2), nn.ReLU(), nn.Linear(2, 1)), torch.randn(5, 2)
    >>> torch.equal(Fused(*layers)(x), nn.Sequential(*layers)(x))
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        layers = iter(self)
        following = next(layers, None)
        while following is not None:
            layer, following = following, next(layers, None)
            together = getattr(layer, "rectified", None)
            if together is None or type(following) is not nn.ReLU or _hooked(layer) or _hooked(following):
                input = layer(input)
            else:
                input, following = together(input), next(layers, None)
        return input


def _hooked(layer: nn.Module) -> bool:
    """Whether someone watches what goes into it or a part of it, comes out or is passed back."""
    return any(
        part._forward_pre_hooks or part._forward_hooks or part._backward_pre_hooks or part._backward_hooks
        for part in layer.modules()
    )
