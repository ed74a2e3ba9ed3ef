import networkx as nx
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection

from likely.core.errors import DataError
from likely.data.graph import Graph
from likely.plots.refinements import refinement
from likely.theory.weisfeiler_lehman import weisfeiler_lehman


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def nodes(ax):
    (scatter,) = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    return scatter


@pytest.mark.parametrize("iterations", [0, 1, None])
def test_nodes_look_alike_exactly_where_their_colours_are_the_same(iterations):
    graph = nx.balanced_tree(2, 2)
    ax = refinement(graph, iterations)
    colours = weisfeiler_lehman(graph, iterations)
    faces = nodes(ax).get_facecolors()
    alike = (faces[:, None] == faces[None]).all(-1)
    np.testing.assert_array_equal(alike, colours[:, None] == colours[None])
    assert [text.get_text() for text in ax.texts[: len(colours)]] == [str(colour) for colour in colours]


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (nx.cycle_graph(6), "Refinement tells no two nodes apart"),
        (nx.path_graph(5), "Refinement tells 3 kinds of nodes apart among 5"),
        (Graph(np.eye(3), [[0, 1], [1, 2]]), "Refinement tells every node from every other"),
    ],
)
def test_the_title_counts_the_kinds(graph, text):
    assert title(refinement(graph)) == text


def test_every_edge_is_drawn_once_and_nodes_are_where_they_are_put():
    places = np.column_stack([np.arange(5), np.zeros(5)])
    ax = refinement(nx.path_graph(5), places=places)
    (edges,) = [artist for artist in ax.collections if isinstance(artist, LineCollection)]
    assert len(edges.get_segments()) == 4
    np.testing.assert_allclose(nodes(ax).get_offsets(), places)


def test_it_draws_on_the_axes_it_is_given_and_takes_a_title():
    _, ax = plt.subplots()
    assert refinement(nx.path_graph(3), title="Ends", ax=ax) is ax
    assert title(ax) == "Ends"


def test_what_does_not_fit_is_named():
    with pytest.raises(DataError, match="graph must be a Graph or a networkx graph; found a list"):
        refinement([1, 2])
    with pytest.raises(DataError, match=r"places has shape \(2, 2\); it must be \(3, 2\)"):
        refinement(nx.path_graph(3), places=np.zeros((2, 2)))
