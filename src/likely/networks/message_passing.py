"""MessagePassing: neighbours send messages, and each node makes of them, and of what it was, what it becomes.

mlp        hₜ⁺ = α(ψ(hₜ, ⊕ₛ φ(hₛ, hₜ, xₜₛ)))
neighbour  hₜ⁺ = α(ψ((1 + ε)hₜ + ⊕ₛ hₛ))               the graph isomorphism network, if ⊕ is the sum
"""

from __future__ import annotations

from typing import Literal, Self

from torch import nn

from ..core.spec import require
from .graph_network import _GraphNetwork
from .layers.graph import AGGREGATES
from .layers.graph_layers import MessagePassingLayer

__all__ = ["MessagePassing"]


class MessagePassing(_GraphNetwork):
    """Messages φ and updates ψ are perceptrons with one hidden layer of as many units as the layer has.

    `aggregate` is "sum", "mean" or "max" of the messages. With `message="neighbour"` what a node sends is what it is:
    the graph isomorphism network, which with sums (and `readout="sum"`) tells apart all graphs that Weisfeiler and
    Lehman's test does. Features of edges are part of the messages. Other arguments are those of `GCN`.

    >>> import torch
    >>> from likely.data.graph import Graph, Graphs
    >>> graphs = Graphs.of([Graph(torch.ones(3, 1), [[0, 1], [1, 2]]).undirected(), Graph(torch.ones(2, 1), [])])
    >>> MessagePassing((8, 8)).build((1,), 2)(graphs).shape
    torch.Size([2, 2])
    """

    hidden: tuple[int, ...] = (32, 32)
    aggregate: Literal["sum", "mean", "max"] = "sum"
    level: Literal["node", "graph"] = "graph"
    message: Literal["mlp", "neighbour"] = "mlp"

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=(2,), activation="tanh")

    def validate(self) -> None:
        super().validate()
        require(self.aggregate in AGGREGATES, self, "aggregate", f"one of {', '.join(AGGREGATES)}")
        require(self.message in ("mlp", "neighbour"), self, "message", "mlp or neighbour")

    def _layer(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        return MessagePassingLayer(width, units, edge_features, self.aggregate, self.message, self.activation, dropout)
