"""What graph networks share: blocks of a layer, norm, activation and dropout; then an answer for each node or graph.

node    η = layer(h_L)                            one answer for each node
graph   η = W readout(h_L) + b                    one for each graph, from the sum, mean or maximum over its nodes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.shapes import without_numbers
from ..core.spec import is_fraction, is_integer, require
from ..data.graph import Graph, Graphs
from ..data.rows import Inputs
from .base import Network, Shape, refuse_absurd
from .conv_net import weights_of
from .layers.activation import ACTIVATIONS, activation
from .layers.dropout import Dropout
from .layers.graph import AGGREGATES, Aggregate, graphs_of, readout
from .layers.graph_layers import NodeLinear
from .layers.init import lecun
from .layers.norm import norm

__all__ = ["GraphBlock", "GraphNetwork", "drafted"]


NODES = 0.5
"""The probability of dropout in a network that answers for nodes, unless another is given."""


class GraphBlock(nn.Module):
    """A layer → norm → activation → dropout; with `residual="add"` around it Ph + …, with "dense" [h, …].

    `layer` is called with graphs and h, as those of `networks.layers.graph_layers` are.
    """

    def __init__(self, layer: nn.Module, in_features: int, units: int, spec: _GraphNetwork) -> None:
        super().__init__()
        self.layer, self.residual = layer, spec.residual
        after = [] if spec.norm is None else [norm(spec.norm, units)]
        self.after = nn.Sequential(*after, activation(spec.activation), Dropout(spec.dropped))
        projected = spec.residual == "add" and in_features != units
        self.skip = NodeLinear(in_features, units) if projected else None

    def forward(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        new = self.after(self.layer(graphs, h))
        if self.residual is None:
            return new
        if self.skip is not None:
            return self.skip(graphs, h) + new
        before = graphs.features if h is None else h
        return before + new if self.residual == "add" else torch.cat([before, new], 1)


class GraphNetwork(nn.Module):
    """Blocks over the nodes, then the last layer: at each node, or (`how` given) after the readout of each graph."""

    def __init__(self, blocks: Sequence[nn.Module], last: nn.Module, how: Aggregate | None) -> None:
        super().__init__()
        self.blocks, self.last, self.how = nn.ModuleList(blocks), last, how

    def forward(self, x: Inputs) -> Tensor:
        graphs = graphs_of(x)
        h: Tensor | None = None
        for block in self.blocks:
            h = block(graphs, h)
        if self.how is None:
            return self.last(graphs, h)
        return self.last(readout(graphs.features if h is None else h, graphs, self.how))


class _GraphNetwork(Network):
    """The arguments that graph networks share, and how their blocks are put together."""

    hidden: tuple[int, ...] = (16,)
    level: Literal["node", "graph"] = "node"
    readout: Literal["mean", "sum", "max"] = "mean"
    activation: str = "relu"
    dropout: float | Literal["auto"] = 0.0
    input_dropout: float | None = None
    norm: Literal["batch", "layer"] | None = None
    residual: Literal["add", "dense"] | None = None

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        """Rings of 2 to 4 nodes with three numbers each."""
        rings = []
        for row in range(rows):
            nodes = torch.arange(2 + row % 3)
            edges = torch.stack([nodes, nodes.roll(1)])
            rings.append(Graph(torch.randn(len(nodes), 3, generator=generator), edges).undirected())
        return rings

    def validate(self) -> None:
        self._validate_hidden()
        require(self.level in ("node", "graph"), self, "level", "node or graph")
        require(self.readout in AGGREGATES, self, "readout", f"one of {', '.join(AGGREGATES)}")
        require(self.activation in ACTIVATIONS, self, "activation", f"one of {', '.join(ACTIVATIONS)}")
        known = self.dropout == "auto" or is_fraction(self.dropout)
        require(known, self, "dropout", 'a probability, 0 or more and below 1, or "auto"')
        fine = self.input_dropout is None or is_fraction(self.input_dropout)
        require(fine, self, "input_dropout", "None (as dropout) or a probability, 0 or more and below 1")
        require(self.norm in (None, "batch", "layer"), self, "norm", "None, batch or layer")
        require(self.residual in (None, "add", "dense"), self, "residual", "None, add or dense")

    @property
    def dropped(self) -> float:
        """The probability of dropout: "auto" is that of citation networks, where few of many nodes have a label."""
        if isinstance(self.dropout, str):
            return NODES if self.level == "node" else 0.0
        return self.dropout

    def _validate_hidden(self) -> None:
        whole = isinstance(self.hidden, tuple) and all(is_integer(units) for units in self.hidden)
        require(whole, self, "hidden", "a tuple of positive integers, such as (16,)")

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        return in_shape, 0  # features of edges, where there are some, come after those of nodes

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        return in_shape[:1]

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        name = type(self).__name__
        if len(in_shape) not in (1, 2) or min(in_shape) < 1 or out_features < 1:
            raise SpecError(
                f"{name} takes graphs, or rows of numbers as nodes without edges: in_shape (node features,) or "
                f"(node features, edge features); found {in_shape}, and {out_features} outputs."
            )
        refuse_absurd(self, drafted(lambda: self._network(in_shape, out_features)))
        return self._network(in_shape, out_features)

    def _network(self, in_shape: tuple[int, ...], out_features: int) -> nn.Module:
        width, edge_features = (*in_shape, 0)[:2]
        dropped = self.dropped if self.input_dropout is None else self.input_dropout
        blocks: list[nn.Module] = []
        for units in self._widths():
            layer = self._layer(width, units, edge_features, 0.0 if blocks else dropped)
            blocks.append(GraphBlock(layer, width, units, self))
            width = width + units if self.residual == "dense" else units
        if self.level == "node":
            return GraphNetwork(
                blocks, self._last(width, out_features, edge_features, 0.0 if blocks else dropped), None
            )
        last = nn.Linear(width, out_features)
        lecun(last.weight)
        nn.init.zeros_(last.bias)
        return GraphNetwork(blocks, last, self.readout)

    def _widths(self) -> tuple[int, ...]:
        """Units of each block."""
        return self.hidden

    def _layer(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        """The layer of one block, with dropout of what comes in."""
        raise NotImplementedError(f"{type(self).__name__} must implement its layer")

    def _last(self, width: int, units: int, edge_features: int, dropout: float) -> nn.Module:
        """The layer that answers for each node."""
        return self._layer(width, units, edge_features, dropout)


def drafted(make: Callable[[], nn.Module]) -> int:
    """How many weights a module would have, counted without memory for them.

    >>> drafted(lambda: nn.Linear(10**6, 10**6))
    1000001000000
    """
    with without_numbers():
        return weights_of(make())
