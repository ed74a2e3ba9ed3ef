"""Where the nodes and the edges of a graph are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import DataError
from ..data.graph import Graph

__all__ = ["edge_pairs", "node_places"]

CAREFUL = 300
"""Nodes up to which places are found by distances in the graph; more take springs, which are faster."""


def node_places(graph: Graph, given: Any = None) -> np.ndarray:
    """Coordinates (n, 2): those given, or such that nodes near in the graph are near in the picture."""
    if given is None:
        return _found(graph)
    at = np.asarray(given, float)
    if at.shape != (len(graph), 2):
        raise DataError(f"places has shape {at.shape}; it must be ({len(graph)}, 2).")
    return at


def edge_pairs(graph: Graph) -> np.ndarray:
    """Pairs of different nodes with an edge in either direction, each once, (pairs, 2)."""
    pairs = np.unique(np.sort(graph.edges.numpy().T, 1), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def _found(graph: Graph) -> np.ndarray:
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(len(graph)))
    drawn.add_edges_from(graph.edges.numpy().T.tolist())
    whole = len(graph) <= CAREFUL and nx.is_connected(drawn)
    layout = nx.kamada_kawai_layout(drawn) if whole else nx.spring_layout(drawn, seed=0)
    return np.array([layout[node] for node in range(len(graph))])
