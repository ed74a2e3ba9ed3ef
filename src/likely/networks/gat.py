"""GAT: the graph attention network.

hₜ⁺ = φ(‖ₕ Σₛ qₕₜₛ Wₕhₛ),   qₕₜₛ = softmaxₛ(LeakyReLU(aₕ·Wₕhₜ + bₕ·Wₕhₛ + cₕ·xₜₛ)),   s a neighbour of t, or t
"""

from __future__ import annotations

from typing import Literal, Self

from torch import nn

from ..core.spec import is_fraction, is_integer, require
from .graph_network import _GraphNetwork
from .layers.graph_layers import GraphAttention

__all__ = ["GAT"]


class GAT(_GraphNetwork):
    """Attention over neighbours: `heads` heads of `hidden` units each, side by side, in each of `layers` layers.

    With `level="node"` the last of the layers answers, by the mean of `out_heads` heads; with "graph" a linear map of
    the `readout` follows. `attention_dropout` (None: as `dropout`) drops edges from the attention of a step. Features
    of edges take part in the attention where graphs have them. Other arguments are those of `GCN`.

    >>> import torch
    >>> from likely.data.graph import Graph, Graphs
    >>> path = Graphs.of([Graph(torch.ones(3, 1), [[0, 1], [1, 2]]).undirected()])
    >>> GAT(hidden=4, heads=2).build((1,), 5)(path).shape
    torch.Size([3, 5])
    """

    hidden: int = 8  # type: ignore[assignment]
    heads: int = 8
    layers: int = 2
    out_heads: int = 1
    activation: str = "elu"
    dropout: float = 0.6
    attention_dropout: float | None = None

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=2, heads=1, layers=1, level="graph", activation="tanh", dropout=0.0)

    def validate(self) -> None:
        super().validate()
        for name in ("heads", "layers", "out_heads"):
            value = getattr(self, name)
            require(is_integer(value), self, name, "a positive integer")
        fine = self.attention_dropout is None or is_fraction(self.attention_dropout)
        require(fine, self, "attention_dropout", "None (as dropout) or a probability, 0 or more and below 1")

    def _validate_hidden(self) -> None:
        require(is_integer(self.hidden), self, "hidden", "a positive integer: units of a head")

    def _widths(self) -> tuple[int, ...]:
        return (self.heads * self.hidden,) * (self.layers - 1 if self.level == "node" else self.layers)

    def _layer(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        return self._attention(width, self.hidden, self.heads, edge_features, dropout, "concatenate")

    def _last(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        return self._attention(width, units, self.out_heads, edge_features, dropout, "mean")

    def _attention(
        self,
        width: int,
        units: int,
        heads: int,
        edge_features: int,
        dropout: float,
        join: Literal["concatenate", "mean"],
    ) -> nn.Module:
        dropped = self.dropout if self.attention_dropout is None else self.attention_dropout
        return GraphAttention(width, units, heads, edge_features, dropout, dropped, join)
