"""Layers over sets: what they give does not depend on the order of the elements, or follows it.

equivariant    yₘ = xₘ W + pool(x) V + b            the same for each element, with all of them in view
invariant      y  = pool(x)                         `networks.layers.steps.pooled`
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from .init import initialise
from .steps import pooled

__all__ = ["POOLS", "EquivariantLinear"]

POOLS = ("sum", "mean", "max")


class EquivariantLinear(nn.Module):
    """xₘ W + pool(x) V + b for the elements m of each set: (n, t, d) and which elements there are → (n, t, units).

    >>> import torch
    >>> layer, x = EquivariantLinear(2, 3), torch.randn(1, 4, 2)
    >>> order = torch.tensor([2, 0, 3, 1])
    >>> torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-6)
    True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        pool: Literal["sum", "mean", "max"] = "mean",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.pool = pool
        self.own = nn.Linear(in_features, out_features)
        self.others = nn.Linear(in_features, out_features, bias=False)
        for layer in (self.own, self.others):
            initialise(layer.weight.data, "he", activation)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        return self.own(x) + self.others(pooled(x, present, self.pool)).unsqueeze(1)
