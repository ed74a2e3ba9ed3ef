"""Places of nodes: near in the graph is near in the picture; edges are drawn once, whatever their direction."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.data.graph import Graph
from likely.plots.graph_layout import edge_pairs, node_places


def graph(nodes, edges):
    return Graph(torch.zeros(nodes, 1), np.array(edges).T)


PATH = graph(4, [(0, 1), (1, 2), (2, 3)])


def test_edges_are_pairs_of_different_nodes_each_once():
    both = graph(4, [(0, 1), (1, 0), (2, 1), (2, 2), (3, 2), (3, 2)])
    assert edge_pairs(both).tolist() == [[0, 1], [1, 2], [2, 3]]
    np.testing.assert_array_equal(edge_pairs(PATH.undirected()), edge_pairs(PATH))


def test_a_path_is_drawn_as_a_line():
    """Distances in the picture are proportional to those in the graph, which a line can do exactly."""
    at = node_places(PATH)
    apart = np.linalg.norm(at[:, None] - at, axis=-1)
    steps = np.abs(np.arange(4)[:, None] - np.arange(4))
    scale = apart[0, 3] / 3
    assert scale > 0
    np.testing.assert_allclose(apart, scale * steps, atol=0.05 * apart.max())


def test_a_graph_in_parts_has_a_finite_place_for_each_node():
    at = node_places(graph(5, [(0, 1), (2, 3)]))
    assert at.shape == (5, 2)
    assert np.isfinite(at).all()
    np.testing.assert_array_equal(at, node_places(graph(5, [(0, 1), (2, 3)])))


def test_places_that_are_given_are_taken():
    given = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(node_places(PATH, given.tolist()), given)
    with pytest.raises(DataError, match=r"places has shape \(3, 2\); it must be \(4, 2\)"):
        node_places(PATH, given[:3])
