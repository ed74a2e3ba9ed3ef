"""Linear: η = W x + b. With it, every likelihood is a generalised linear model."""

from __future__ import annotations

from torch import nn

from .base import Network, Shape

__all__ = ["Linear"]


class Linear(Network):
    """η = W x + b (or W x with `bias=False`), on the last axis of x. Starts at zero, since its fits are convex.

    >>> Linear().build((3,), 1)
    Linear(in_features=3, out_features=1, bias=True)
    """

    bias: bool = True

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        """One `nn.Linear`."""
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        layer = nn.Linear(in_shape[-1], out_features, bias=self.bias)
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
        return layer
