"""Colour refinement: agrees with networkx, and bounds what graph networks can tell apart."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.data.graph import Graph, Graphs
from likely.networks import GAT, GCN, ChebNet, MessagePassing
from likely.theory.weisfeiler_lehman import same_colours, weisfeiler_lehman

TRIANGLES = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
HEXAGON = nx.cycle_graph(6)
DECALIN = nx.Graph([*nx.utils.pairwise(range(10), cyclic=True), (0, 5)])  # two hexagons with an edge in common
BICYCLOPENTYL = nx.Graph(
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (5, 6), (6, 7), (7, 8), (8, 9), (9, 5), (0, 5)]
)  # two pentagons, joined by an edge
ALIKE = [(TRIANGLES, HEXAGON), (DECALIN, BICYCLOPENTYL)]

NETWORKS = [
    GCN((8, 8, 8), level="graph", readout="sum", activation="tanh"),
    ChebNet((8,), level="graph", readout="sum", activation="tanh"),
    GAT(hidden=8, heads=2, level="graph", readout="sum"),
    MessagePassing((8, 8, 8), readout="sum", activation="tanh"),
    MessagePassing((8, 8, 8), readout="sum", message="neighbour", activation="tanh"),
]


def answers(spec, *graphs):
    net = spec.build((1,), 3).double().eval()
    return net(Graphs.of([Graph.from_networkx(graph) for graph in graphs]).map(lambda x: x.double()))


def small_graphs():
    """All connected graphs of five and six nodes, up to isomorphism."""
    return [g for g in nx.graph_atlas_g() if g.number_of_nodes() in (5, 6) and nx.is_connected(g)]


def test_colours_tell_apart_what_networkx_hashes_tell_apart():
    graphs = small_graphs()
    for graph in graphs:
        nx.set_node_attributes(graph, 1, "kind")
    hashes = [nx.weisfeiler_lehman_graph_hash(graph, node_attr="kind", iterations=8) for graph in graphs]
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(len(graphs)), 2)
        if graphs[i].number_of_edges() == graphs[j].number_of_edges()
    ]
    rng = np.random.default_rng(0)
    alike = [(i, j) for i, j in pairs if hashes[i] == hashes[j]]
    chosen = alike + [pairs[k] for k in rng.choice(len(pairs), 300, replace=False)]
    for i, j in chosen:
        assert same_colours(graphs[i], graphs[j]) == (hashes[i] == hashes[j])
    assert alike


def test_colours_of_a_tree_are_its_orbits():
    """In a tree, nodes have one colour if and only if a symmetry takes one to the other."""
    tree = nx.balanced_tree(2, 3)
    colours = weisfeiler_lehman(Graph.from_networkx(tree))
    depth = nx.shortest_path_length(tree, 0)
    assert len(set(colours)) == 4
    assert all((colours[a] == colours[b]) == (depth[a] == depth[b]) for a in tree for b in tree)


def test_each_iteration_refines_the_last():
    graph = Graph.from_networkx(nx.gnp_random_graph(20, 0.15, seed=0))
    before = weisfeiler_lehman(graph, 0)
    assert set(before) == {0}
    for iterations in range(1, 6):
        after = weisfeiler_lehman(graph, iterations)
        assert all(len(set(before[after == colour])) == 1 for colour in set(after))
        before = after
    stable = weisfeiler_lehman(graph)
    np.testing.assert_array_equal(stable, weisfeiler_lehman(graph, 20))


def test_colours_do_not_depend_on_the_numbering():
    graph = nx.gnp_random_graph(12, 0.3, seed=2)
    order = dict(zip(graph, np.random.default_rng(0).permutation(12).tolist(), strict=True))
    assert same_colours(graph, nx.relabel_nodes(graph, order))
    shuffled = nx.Graph()
    shuffled.add_nodes_from(range(12))
    shuffled.add_edges_from(nx.relabel_nodes(graph, order).edges)
    own, other = (weisfeiler_lehman(Graph.from_networkx(g)) for g in (graph, shuffled))
    assert all((own[a] == own[b]) == (other[order[a]] == other[order[b]]) for a in graph for b in graph)


def test_features_of_nodes_and_edges_are_first_colours():
    path = Graph([[1.0], [1.0], [2.0]], [[0, 1], [1, 2]]).undirected()
    assert len(set(weisfeiler_lehman(path, 0))) == 2
    ring = [[0, 1, 2], [1, 2, 0]]
    plain, marked = (Graph(np.ones((3, 1)), ring, np.array([[0.0], [0.0], [mark]])) for mark in (0.0, 1.0))
    assert len(set(weisfeiler_lehman(plain))) == 1
    assert len(set(weisfeiler_lehman(marked))) == 3
    assert not same_colours(plain, marked)


@pytest.mark.parametrize("pair", ALIKE)
@pytest.mark.parametrize("spec", NETWORKS)
def test_no_network_separates_what_colours_do_not(spec, pair):
    assert not nx.is_isomorphic(*pair)
    assert same_colours(*pair)
    first, second = answers(spec, *pair)
    torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spec", NETWORKS)
def test_nodes_of_one_colour_get_one_answer(spec):
    drawn = nx.barbell_graph(4, 2)
    graph = Graph.from_networkx(drawn)
    net = spec.replace(level="node").build((1,), 2).double().eval()
    out = net(Graphs.of([graph]).map(lambda x: x.double()))
    colours = weisfeiler_lehman(graph)
    for colour in set(colours):
        own = out[torch.from_numpy(colours == colour)]
        torch.testing.assert_close(own, own[:1].expand_as(own), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("message", ["mlp", "neighbour"])
def test_message_passing_with_sums_separates_what_colours_do(message):
    """At random weights, all connected graphs of five nodes whose colours differ get different answers."""
    graphs = [g for g in small_graphs() if g.number_of_nodes() == 5]
    spec = MessagePassing((16, 16, 16), readout="sum", message=message, activation="tanh")
    out = answers(spec, *graphs)
    for i, j in itertools.combinations(range(len(graphs)), 2):
        apart = float((out[i] - out[j]).detach().norm())
        assert (apart > 1e-6) == (not same_colours(graphs[i], graphs[j])), (i, j)


def test_means_do_not_count_neighbours_and_sums_do():
    """Regular graphs of different degrees: the colours differ, a mean of equal neighbours does not."""
    pair = nx.cycle_graph(6), nx.complete_graph(6)
    assert not same_colours(*pair)
    mean = MessagePassing((8,), aggregate="mean", message="neighbour")
    torch.testing.assert_close(*answers(mean, *pair))
    first, second = answers(MessagePassing((8,), message="neighbour"), *pair)
    assert not torch.allclose(first, second, atol=1e-4)


def test_what_is_no_graph_is_refused():
    with pytest.raises(DataError, match="must be a Graph or a networkx graph; found a list"):
        weisfeiler_lehman([[0, 1]])
    with pytest.raises(DataError, match="iterations=-1 must be an integer, 0 or more"):
        weisfeiler_lehman(HEXAGON, -1)
