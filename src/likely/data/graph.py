"""Graphs: nodes with features, edges between them. Many graphs are one, in which no edge joins two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .rows import Rows, index_of_parts

__all__ = ["Graph", "Graphs"]


class Graph:
    """Nodes with `features` (n, d), `edges` (2, m) from the first row's nodes to the second's, and their features.

    Edges are directed: an undirected graph holds each edge both ways, which `undirected` sees to.

    >>> graph = Graph([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])
    >>> graph, graph.undirected()
    (Graph(nodes=3, edges=2, features=1), Graph(nodes=3, edges=4, features=1))
    """

    def __init__(self, features: Any, edges: Any, edge_features: Any = None) -> None:
        self.features = _numbers(features, "features")
        self.edges = _edges(edges, len(self.features))
        self.edge_features = None if edge_features is None else _numbers(edge_features, "edge_features")
        if self.edge_features is not None and len(self.edge_features) != self.edges.shape[1]:
            rows, wanted = len(self.edge_features), self.edges.shape[1]
            raise DataError(f"edge_features has {rows} rows, but there are {wanted} edges.")

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        own = "" if self.edge_features is None else f", edge_features={self.edge_features.shape[1]}"
        return f"Graph(nodes={len(self)}, edges={self.edges.shape[1]}, features={self.features.shape[1]}{own})"

    @staticmethod
    def from_networkx(graph: Any, features: str | Sequence[str] | None = None, edge_features: Any = None) -> Graph:
        """A networkx graph; nodes are taken in its order, and undirected edges both ways.

        `features` names the node attributes (numbers or vectors) that become features, `edge_features` those of edges.
        Without features every node has the number 1.

        >>> import networkx as nx
        >>> Graph.from_networkx(nx.path_graph(3))
        Graph(nodes=3, edges=4, features=1)
        """
        index = {node: i for i, node in enumerate(graph.nodes)}
        own = [_attributes(data, features, f"node {node!r}") for node, data in graph.nodes(data=True)]
        links = [
            (index[a], index[b], _attributes(data, edge_features, f"edge {(a, b)!r}"))
            for a, b, data in graph.edges(data=True)
        ]
        if not graph.is_directed():
            links += [(b, a, values) for a, b, values in links if a != b]
        ends = np.array([(a, b) for a, b, _ in links], dtype=np.int64).reshape(-1, 2).T
        return Graph(own, ends, [values for _, _, values in links] if edge_features is not None and links else None)

    def undirected(self) -> Graph:
        """Every edge both ways, once, with the features of the first."""
        both = torch.cat([self.edges, self.edges.flip(0)], 1)
        code = both[0] * len(self) + both[1]
        unique, inverse = code.unique(return_inverse=True)
        first = torch.full_like(unique, len(code)).scatter_reduce(0, inverse, torch.arange(len(code)), "amin")
        values = None if self.edge_features is None else torch.cat([self.edge_features] * 2)[first]
        return Graph(self.features, both[:, first], values)


class Graphs(Rows):
    """Several graphs as one: nodes and edges one graph after the other; edges number the nodes of all graphs.

    >>> pair = Graphs.of([Graph([[1.0], [2.0]], [[0], [1]]), Graph([[3.0], [4.0]], [[1], [0]])])
    >>> pair.edges.tolist(), pair[1:].edges.tolist(), pair.owner.tolist()
    ([[0, 3], [1, 2]], [[1], [0]], [0, 0, 1, 1])
    """

    kind = "graph"

    def __init__(
        self,
        features: Tensor,
        edges: Tensor,
        offsets: Tensor,
        edge_offsets: Tensor,
        edge_features: Tensor | None = None,
    ) -> None:
        self._features, self.edges, self.edge_features = features, edges, edge_features
        self.offsets, self.edge_offsets = offsets, edge_offsets
        self._kept: dict[Any, Any] = {}
        self._of_features: dict[Any, Any] = {}

    @staticmethod
    def of(graphs: Sequence[Graph], name: str = "X", *, listed: bool = True) -> Graphs:
        """From a list of graphs with features of one width; one that came without a list is not `listed`."""
        first = graphs[0]
        for i, graph in enumerate(graphs):
            if graph.features.shape[1] != first.features.shape[1]:
                width, wanted = graph.features.shape[1], first.features.shape[1]
                raise DataError(
                    f"{name}[{i}] has {width} features at each node, but {name}[0] has {wanted}; all need the same."
                )
            if _edge_width(graph.edge_features) != _edge_width(first.edge_features):
                width, wanted = _edge_width(graph.edge_features), _edge_width(first.edge_features)
                raise DataError(
                    f"{name}[{i}] has {width} features at each edge, but {name}[0] has {wanted}; all need the same."
                )
        nodes = torch.tensor([0, *(len(graph) for graph in graphs)]).cumsum(0)
        links = torch.tensor([0, *(graph.edges.shape[1] for graph in graphs)]).cumsum(0)
        edges = torch.cat([graph.edges + start for graph, start in zip(graphs, nodes.tolist(), strict=False)], 1)
        values = [graph.edge_features for graph in graphs if graph.edge_features is not None]
        features = torch.cat([graph.features for graph in graphs])
        made = Graphs(features, edges, nodes, links, torch.cat(values) if values else None)
        made.listed = listed
        return made

    @property
    def features(self) -> Tensor:
        return self._features

    @property
    def shape(self) -> tuple[int, ...]:
        """(features of a node,), or (features of a node, features of an edge)."""
        own = () if self.edge_features is None else (self.edge_features.shape[1],)
        return (self._features.shape[1], *own)

    def __getitem__(self, index: Tensor | slice) -> Graphs:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1 and stop - start == len(self):
                return self
            index = torch.arange(start, stop, step, device=self.device)
        nodes, offsets = index_of_parts(self.offsets, index)
        links, edge_offsets = index_of_parts(self.edge_offsets, index)
        shift = torch.repeat_interleave(offsets[:-1] - self.offsets[index], edge_offsets.diff())
        values = None if self.edge_features is None else self.edge_features[links]
        return Graphs(self._features[nodes], self.edges[:, links] + shift, offsets, edge_offsets, values)

    def map(self, change: Callable[[Tensor], Tensor]) -> Graphs:
        """The same graphs with the features of nodes and edges changed."""
        values = None if self.edge_features is None else change(self.edge_features)
        return Graphs(change(self._features), self.edges, self.offsets, self.edge_offsets, values)

    def with_features(self, features: Tensor) -> Graphs:
        changed = Graphs(features, self.edges, self.offsets, self.edge_offsets, self.edge_features)
        changed._kept = self._kept  # adjacencies are of the edges: made for one, they serve the other
        return changed

    def move(self, device: torch.device) -> Graphs:
        values = None if self.edge_features is None else self.edge_features.to(device)
        features, edges = self._features.to(device), self.edges.to(device)
        return Graphs(features, edges, self.offsets.to(device), self.edge_offsets.to(device), values)

    def tensors(self) -> tuple[Tensor, ...]:
        own = (self._features, self.edges.T, self.offsets, self.edge_offsets)
        return own if self.edge_features is None else (*own, self.edge_features)

    def kept(self, name: Any, make: Callable[[Graphs], Any], *, of_features: bool = False) -> Any:
        """What `make` gives for these graphs, made once: a normalised adjacency serves every layer and every epoch.

        What depends on the features of the nodes says so, and is not shared with graphs that have others.
        """
        kept = self._of_features if of_features else self._kept
        if name not in kept:
            kept[name] = make(self)
        return kept[name]


def _numbers(values: Any, name: str) -> Tensor:
    try:
        table = values.detach() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: {str(error).partition(chr(10))[0]}") from error
    if table.ndim != 2 or 0 in table.shape:
        wanted = "(nodes, d)" if name == "features" else "(edges, d)"
        raise DataError(f"{name} has shape {tuple(table.shape)}; it must be {wanted} with one row or more.")
    if table.is_floating_point() and not bool(torch.isfinite(table.sum())):
        bad = (~torch.isfinite(table)).nonzero()[0].tolist()
        raise DataError(f"{name} contains {table[tuple(bad)].item()} at row {bad[0]}, column {bad[1]}; fill it first.")
    return table if table.is_floating_point() else table.float()


def _edges(edges: Any, nodes: int) -> Tensor:
    pairs = edges.detach() if isinstance(edges, Tensor) else torch.from_numpy(np.array(edges))
    if pairs.numel() == 0:
        return torch.empty(2, 0, dtype=torch.long)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        more = "; this looks like one row for each edge, so give its transpose" if pairs.shape[-1] == 2 else ""
        raise DataError(f"edges has shape {tuple(pairs.shape)}; it must be (2, m): from where, and to where{more}.")
    if pairs.is_floating_point() and bool((pairs != pairs.floor()).any()):
        raise DataError("edges has numbers that are not integers; an edge names two nodes by their index, from 0.")
    pairs = pairs.long()
    outside = ((pairs < 0) | (pairs >= nodes)).any(0).nonzero()
    if len(outside):
        index = int(outside[0])
        pair = tuple(pairs[:, index].tolist())
        raise DataError(f"edge {index} is {pair}, but the graph has {nodes} nodes, 0 to {nodes - 1}.")
    return pairs


def _edge_width(values: Tensor | None) -> int:
    return 0 if values is None else values.shape[1]


def _attributes(data: dict[str, Any], names: str | Sequence[str] | None, where: str) -> list[float]:
    """Some attributes of a node or an edge as one list of numbers."""
    if names is None:
        return [1.0]
    values: list[float] = []
    for name in [names] if isinstance(names, str) else names:
        if name not in data:
            raise DataError(f"{where} has no attribute {name!r}; it has {', '.join(map(repr, data)) or 'none'}.")
        values += np.ravel(data[name]).astype(float).tolist()
    return values
