import networkx as nx
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection, PathCollection

from likely.core.errors import DataError
from likely.data.graph import Graph
from likely.plots.spectra import spectrum
from likely.theory.spectral import graph_spectrum

PATH = Graph.from_networkx(nx.path_graph(8))
PIECES = Graph.from_networkx(nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(5)))


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


@pytest.mark.parametrize("kind", ["combinatorial", "symmetric", "random_walk"])
def test_the_points_are_the_eigenvalues(kind):
    ax = spectrum(PATH, kind=kind)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), graph_spectrum(PATH, kind).values)


def test_the_title_counts_the_pieces():
    assert title(spectrum(PATH)) == "The graph is in one piece: 0 is an eigenvalue once"
    assert title(spectrum(PIECES)) == "The graph is in 2 pieces: 0 is an eigenvalue 2 times"


@pytest.mark.parametrize("number", [0, 1, 3])
def test_eigenvector_k_of_a_path_changes_its_sign_k_times(number):
    ax = spectrum(PATH, number)
    start = f"Eigenvector {number} changes its sign along "
    assert title(ax) == start + (f"{number} of 7 edges" if number else "no edge")
    drawn = [artist for artist in ax.collections if isinstance(artist, LineCollection)]
    assert [len(artist.get_segments()) for artist in drawn] == [7 - number, number]


def test_nodes_are_as_large_as_their_entries_and_where_they_are_put():
    places = np.column_stack([np.arange(8), np.zeros(8)])
    ax = spectrum(PATH, 2, places=places)
    (nodes,) = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    np.testing.assert_allclose(nodes.get_offsets(), places)
    vector = graph_spectrum(PATH).vectors[:, 2]
    np.testing.assert_allclose(nodes.get_array(), vector)
    assert np.corrcoef(nodes.get_sizes(), np.abs(vector))[0, 1] == pytest.approx(1)


def test_it_draws_on_the_axes_it_is_given_and_takes_a_title():
    _, ax = plt.subplots()
    assert spectrum(PIECES, -1, title="Fast", ax=ax) is ax
    assert title(ax) == "Fast"


def test_what_does_not_fit_is_named():
    with pytest.raises(DataError, match="vector=8 must be the number of an eigenvector: 0 to 7"):
        spectrum(PATH, 8)
    with pytest.raises(DataError, match=r"places has shape \(3, 2\); it must be \(8, 2\)"):
        spectrum(PATH, 1, places=np.zeros((3, 2)))
