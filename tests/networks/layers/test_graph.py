"""Matrices of graphs against networkx, and aggregation against its definition."""

from __future__ import annotations

import gc
import weakref

import networkx as nx
import numpy as np
import pytest
import torch

from likely.core.errors import SpecError
from likely.data.graph import Graph, Graphs
from likely.data.rows import Ragged
from likely.data.sparse import Selection
from likely.networks.layers.graph import (
    adjacency,
    aggregate,
    graphs_of,
    laplacian,
    normalised_adjacency,
    owners,
    readout,
    segment_softmax,
    sources,
    sparse_features,
    targets,
)


def two():
    """A connected graph, and one with a node by itself."""
    first, second = nx.karate_club_graph(), nx.path_graph(4)
    second.add_node(4)
    graphs = [Graph.from_networkx(g) for g in (first, second)]
    return nx.disjoint_union(first, second), Graphs.of(graphs).map(lambda x: x.double())


def test_adjacency_and_laplacians_are_those_of_networkx():
    drawn, graphs = two()
    wanted = {
        "combinatorial": nx.laplacian_matrix(drawn, weight=None).toarray(),
        "symmetric": nx.normalized_laplacian_matrix(drawn, weight=None).toarray(),
    }
    np.testing.assert_allclose(adjacency(graphs).dense(), nx.to_numpy_array(drawn, weight=None))
    for kind, matrix in wanted.items():
        np.testing.assert_allclose(laplacian(graphs, kind).dense(), matrix, atol=1e-12)
    degree = np.maximum(1, nx.to_numpy_array(drawn, weight=None).sum(1, keepdims=True))
    np.testing.assert_allclose(laplacian(graphs, "random_walk").dense(), wanted["combinatorial"] / degree, atol=1e-12)
    shifted = laplacian(graphs, "symmetric", shift=-1.0).dense()
    np.testing.assert_allclose(shifted, wanted["symmetric"] - np.eye(len(degree)), atol=1e-12)


def test_normalised_adjacency_is_its_formula():
    _, graphs = two()
    a = adjacency(graphs).dense() + torch.eye(len(graphs.features))
    root = torch.diag(a.sum(1) ** -0.5)
    torch.testing.assert_close(normalised_adjacency(graphs).dense(), root @ a @ root)


def test_edges_have_a_direction_and_may_be_several():
    graphs = Graphs.of([Graph([[1.0], [1.0], [1.0]], [[0, 0, 2], [1, 1, 0]])])
    assert adjacency(graphs).dense().tolist() == [[0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    h = torch.tensor([[1.0], [10.0], [100.0]], dtype=torch.float64)
    torch.testing.assert_close(targets(graphs).T @ (sources(graphs) @ h), adjacency(graphs) @ h)


def test_matrices_are_made_once_and_go_with_their_graphs():
    _, graphs = two()
    makers = [adjacency, normalised_adjacency, laplacian, sources, targets, owners]
    matrices = [make(graphs) for make in makers]
    assert all(make(graphs) is matrix for make, matrix in zip(makers, matrices, strict=True))
    for matrix in matrices:
        matrix.T @ (matrix @ torch.ones(matrix.shape[1], 1, dtype=torch.float64))
    watched = weakref.ref(graphs)
    gc.disable()
    try:
        del graphs
        assert watched() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_aggregation_is_its_definition(how):
    index = torch.tensor([3, 0, 3, 1, 3])
    values = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    at = Selection(lambda: index, 5, 4, torch.float64)
    function = {"sum": lambda v: v.sum(0), "mean": lambda v: v.mean(0), "max": lambda v: v.amax(0)}[how]
    wanted = [function(values[index == k]) if bool((index == k).any()) else values.new_zeros(2) for k in range(4)]
    torch.testing.assert_close(aggregate(values, at, how), torch.stack(wanted))
    torch.autograd.gradcheck(lambda v: aggregate(v, at, how), values)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_the_readout_of_many_graphs_is_that_of_each(how):
    _, graphs = two()
    h = torch.randn(len(graphs.features), 3, dtype=torch.float64)
    parts = h.split(graphs.lengths.tolist())
    by_graph = [getattr(part, {"max": "amax"}.get(how, how))(0) for part in parts]
    torch.testing.assert_close(readout(h, graphs, how), torch.stack(by_graph))


def test_segment_softmax_sums_to_one_whatever_the_size_of_the_scores():
    index = torch.tensor([0, 2, 0, 2, 2])
    at = Selection(lambda: index, 5, 3, torch.float64)
    scores = torch.tensor([[1e4], [-1e4], [1e4 - 1], [-1e4], [-1e4 + 2]], dtype=torch.float64)
    weights = segment_softmax(scores, at)
    for k in (0, 2):
        torch.testing.assert_close(weights[index == k], scores[index == k].softmax(0))
    small = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda s: segment_softmax(s, at), small)


def test_rows_of_a_tensor_are_nodes_without_edges():
    x = torch.randn(4, 3)
    graphs = graphs_of(x)
    torch.testing.assert_close(normalised_adjacency(graphs).dense(), torch.eye(4))
    assert graphs_of(graphs) is graphs
    with pytest.raises(ValueError, match=r"found shape \(4, 3, 2\)"):
        graphs_of(torch.zeros(4, 3, 2))
    with pytest.raises(ValueError, match="it takes graphs, and these are sequences"):
        graphs_of(Ragged.of([[1.0], [2.0, 3.0]]))


def test_features_that_are_mostly_zero_are_held_without_zeros():
    x = torch.zeros(300, 300)
    x[torch.arange(300), torch.randint(300, (300,))] = torch.randn(300)
    sparse = sparse_features(graphs_of(x))
    assert sparse is not None
    torch.testing.assert_close(sparse.dense(), x)
    assert sparse_features(graphs_of(torch.ones(300, 300))) is None
    assert sparse_features(graphs_of(x.requires_grad_())) is None  # a constant has no gradient


def test_an_unknown_laplacian_is_refused():
    with pytest.raises(SpecError, match="Unknown Laplacian 'signless'; known: combinatorial, symmetric, random_walk"):
        laplacian(graphs_of(torch.zeros(2, 1)), "signless")
