"""ChebNet: a graph network whose layers are polynomial filters of the graph's frequencies.

hₗ = φ(Σₖ Tₖ(L̃) hₗ₋₁ Wₗₖ + bₗ),   L̃ = L − I,   T₀ = 1, T₁ = x, Tₖ = 2x Tₖ₋₁ − Tₖ₋₂
"""

from __future__ import annotations

from typing import Self

from torch import nn

from ..core.spec import is_integer, require
from .graph_network import _GraphNetwork
from .layers.graph_layers import ChebyshevConvolution

__all__ = ["ChebNet"]


class ChebNet(_GraphNetwork):
    """Chebyshev filters of degree `order`, which reach as many steps along the edges; other arguments as for `GCN`.

    L is the symmetric Laplacian I − D^(-1/2) A D^(-1/2). Features of edges are not used.

    >>> import torch
    >>> from likely.data.graph import Graph, Graphs
    >>> path = Graphs.of([Graph(torch.ones(3, 1), [[0, 1], [1, 2]]).undirected()])
    >>> ChebNet((8,), order=2).build((1,), 2)(path).shape
    torch.Size([3, 2])
    """

    order: int = 3

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=(2,), level="graph", activation="tanh", order=2)

    def validate(self) -> None:
        super().validate()
        require(is_integer(self.order, 0) and self.order <= 1000, self, "order", "an integer from 0 to 1000")

    def _layer(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        return ChebyshevConvolution(width, units, self.order, dropout)
