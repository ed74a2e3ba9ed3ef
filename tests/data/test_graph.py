"""Graphs: a list of them is one graph without edges between its parts."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.data.graph import Graph, Graphs


def made(count=5, edge_width=2):
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(count):
        nodes, links = rng.integers(1, 6), rng.integers(0, 8)
        edges = rng.integers(0, nodes, (2, links))
        graphs.append(
            Graph(rng.normal(size=(nodes, 3)), edges, rng.normal(size=(links, edge_width)) if links else None)
        )
    return [
        g if g.edge_features is not None else Graph(g.features, [[0], [0]], np.zeros((1, edge_width))) for g in graphs
    ]


def test_graphs_by_index_are_those_of_the_list():
    graphs = made()
    together = Graphs.of(graphs)
    index = [3, 0, 3]
    chosen = together[torch.tensor(index)]
    wanted = Graphs.of([graphs[i] for i in index])
    for tensor, own in zip(chosen.tensors(), wanted.tensors(), strict=True):
        torch.testing.assert_close(tensor, own, rtol=0, atol=0)
    assert together[:] is together


def test_no_edge_joins_two_graphs():
    together = Graphs.of(made(20))
    owner = together.owner
    assert torch.equal(owner[together.edges[0]], owner[together.edges[1]])


def test_networkx_gives_both_directions_and_attributes():
    graph = nx.Graph()
    graph.add_node("a", size=1.0, colour=[0.0, 1.0])
    graph.add_node("b", size=2.0, colour=[1.0, 0.0])
    graph.add_edge("a", "b", weight=3.0)
    converted = Graph.from_networkx(graph, ["size", "colour"], "weight")
    assert converted.features.tolist() == [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    assert converted.edges.tolist() == [[0, 1], [1, 0]]
    assert converted.edge_features.tolist() == [[3.0], [3.0]]
    with pytest.raises(DataError, match="node 'a' has no attribute 'mass'; it has 'size', 'colour'"):
        Graph.from_networkx(graph, "mass")


def test_undirected_holds_each_edge_both_ways_once():
    graph = Graph(np.ones((3, 1)), [[0, 1, 1], [1, 0, 2]], [[1.0], [2.0], [3.0]]).undirected()
    pairs = {
        tuple(pair): value
        for pair, value in zip(graph.edges.T.tolist(), graph.edge_features.ravel().tolist(), strict=True)
    }
    assert pairs == {(0, 1): 1.0, (1, 0): 2.0, (1, 2): 3.0, (2, 1): 3.0}


def test_what_is_kept_is_made_once():
    together = Graphs.of(made())
    assert together.kept("degrees", lambda g: torch.zeros(len(g))) is together.kept("degrees", lambda _: None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0], [2.0]], [[0, 1], [1, 2]]), r"edge 1 is \(1, 2\), but the graph has 2 nodes, 0 to 1"),
        (([[1.0], [2.0]], [[0, 1], [1, 0], [0, 0]]), "one row for each edge, so give its transpose"),
        (([[1.0], [2.0]], [[0.5], [1.0]]), "not integers; an edge names two nodes by their index"),
        (([[1.0], [2.0]], [[0], [1]], [[1.0], [2.0]]), "edge_features has 2 rows, but there are 1 edges"),
        ((np.zeros((0, 2)), []), r"features has shape \(0, 2\)"),
        (([[1.0], [np.inf]], []), "features contains inf at row 1, column 0"),
    ],
)
def test_what_is_no_graph_is_named(arguments, message):
    with pytest.raises(DataError, match=message):
        Graph(*arguments)


def test_graphs_of_different_widths_are_refused():
    with pytest.raises(DataError, match=r"X\[1\] has 2 features at each node, but X\[0\] has 1"):
        Graphs.of([Graph([[1.0]], []), Graph([[1.0, 2.0]], [])])
    with pytest.raises(DataError, match=r"X\[1\] has 1 features at each edge, but X\[0\] has 0"):
        Graphs.of([Graph([[1.0]], [[0], [0]]), Graph([[1.0]], [[0], [0]], [[1.0]])])
