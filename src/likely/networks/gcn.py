"""GCN: the graph convolutional network.

h₀ = X,   hₗ = φ(Ā hₗ₋₁ Wₗ + bₗ),   η = Ā h_L W + b,   Ā = D^(-1/2) (A + I) D^(-1/2)
"""

from __future__ import annotations

from typing import Literal, Self

from torch import nn

from .graph_network import _GraphNetwork
from .layers.graph_layers import GraphConvolution

__all__ = ["GCN"]


class GCN(_GraphNetwork):
    """Graph convolutions of `hidden` units; every layer averages over neighbours, weighed by their degrees.

    `level="node"` answers for each node (its last layer is a convolution too), "graph" for each graph, by a linear map
    of the `readout` ("mean", "sum" or "max" over nodes). A block is convolution → norm → activation → dropout, which is
    0.5 for nodes and 0 for graphs if it is "auto"; `input_dropout` is that of the features (None: as `dropout`).
    `residual` is "add" (h + f(h)) or "dense" ([h, f(h)]). Features of edges are not used. Weights are Glorot's.

    >>> from likely import Classifier
    >>> from likely.data.graph import Graph
    >>> from likely.inference import MAP
    >>> path = Graph([[1.0], [0.0], [0.0], [-1.0]], [[0, 1, 2], [1, 2, 3]]).undirected()
    >>> model = Classifier(network=GCN((8,)), inference=MAP("adam(0.05)", epochs=100), random_state=0, missing_label=-1)
    >>> model.fit(path, [0, -1, -1, 1]).predict(path)  # two labels are known
    array([0, 0, 1, 1])
    """

    dropout: float | Literal["auto"] = "auto"

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=(3,), level="graph", activation="tanh")

    def _layer(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        return GraphConvolution(width, units, dropout)
