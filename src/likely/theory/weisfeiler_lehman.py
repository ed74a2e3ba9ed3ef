"""Weisfeiler and Lehman's test: colours of nodes, refined by the colours of their neighbours until nothing changes.

    c₀(v) = features of v,     cₖ₊₁(v) = (cₖ(v), {{ (cₖ(u), x_uv) : u → v }})      {{ }} counts how often

Isomorphic graphs have the same colours equally often; graphs whose colours agree may still differ. A network whose
nodes see only what neighbours send (GCN, MessagePassing) gives nodes of one colour the same answer, so it separates no
graphs that this test does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
import torch

from ..core.errors import DataError
from ..data.graph import Graph, Graphs

__all__ = ["graph_of", "same_colours", "weisfeiler_lehman"]


def weisfeiler_lehman(graph: Graph | Any, iterations: int | None = None) -> np.ndarray:
    """The colour of each node after so many refinements (None: until they are stable), as numbers 0, 1, ….

    Colours are numbered by first appearance; those of two graphs are compared by `same_colours`. A networkx graph is
    read with all nodes alike.

    >>> path = Graph(np.ones((4, 1)), [[0, 1, 2], [1, 2, 3]]).undirected()
    >>> weisfeiler_lehman(path, 0), weisfeiler_lehman(path)
    (array([0, 0, 0, 0]), array([0, 1, 1, 0]))
    """
    return _refined(Graphs.of([graph_of(graph)]), iterations)


def same_colours(first: Graph | Any, second: Graph | Any, iterations: int | None = None) -> bool:
    """Whether both graphs have the same colours equally often: if not, they are not isomorphic.

    >>> triangles = Graph(np.ones((6, 1)), [[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]]).undirected()
    >>> hexagon = Graph(np.ones((6, 1)), [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]).undirected()
    >>> same_colours(triangles, hexagon)  # and yet they differ: the test does not see it
    True
    """
    pair = Graphs.of([graph_of(first), graph_of(second)])
    colours = _refined(pair, iterations)
    cut = int(pair.offsets[1])
    return Counter(colours[:cut].tolist()) == Counter(colours[cut:].tolist())


def _refined(graphs: Graphs, iterations: int | None) -> np.ndarray:
    if iterations is not None and (not isinstance(iterations, int) or iterations < 0):
        raise DataError(f"iterations={iterations!r} must be an integer, 0 or more, or None for until stable.")
    source, target = graphs.edges.numpy()
    kinds = np.zeros(len(source), int) if graphs.edge_features is None else _numbered_rows(graphs.edge_features)
    colours = _numbered_rows(graphs.features)
    limit = len(colours) if iterations is None else iterations  # each refinement but the last adds a colour
    for _ in range(limit):
        refined = _refine(colours, source, target, kinds)
        stable = iterations is None and refined.max() == colours.max()
        colours = refined
        if stable:
            break
    return colours


def _refine(colours: np.ndarray, source: np.ndarray, target: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """One step: a new number for each pair of own colour and sorted colours of the neighbours."""
    sent = colours[source]
    order = np.lexsort((kinds, sent, target))
    pieces = np.split(np.column_stack([sent, kinds])[order], np.searchsorted(target[order], np.arange(1, len(colours))))
    return _numbered([(own, piece.tobytes()) for own, piece in zip(colours.tolist(), pieces, strict=True)])


def _numbered(keys: list[Hashable]) -> np.ndarray:
    """Numbers by first appearance: equal keys, equal numbers."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys])


def _numbered_rows(rows: torch.Tensor) -> np.ndarray:
    return _numbered([tuple(row) for row in rows.tolist()])


def graph_of(graph: Graph | Any) -> Graph:
    """A `Graph`, or a networkx graph read with all nodes alike.

    >>> import networkx as nx
    >>> len(graph_of(nx.path_graph(3)))
    3
    """
    if isinstance(graph, Graph):
        return graph
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        return Graph.from_networkx(graph)
    raise DataError(f"graph must be a Graph or a networkx graph; found a {type(graph).__name__}.")
