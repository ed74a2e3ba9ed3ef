"""Frequencies of graphs: closed forms, inversion, and polynomial filters as spectral ones."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from likely.core.errors import DataError, SpecError
from likely.data.graph import Graph
from likely.networks.layers.graph import LAPLACIANS
from likely.theory.spectral import (
    convolve,
    graph_fourier,
    graph_laplacian,
    graph_spectrum,
    inverse_graph_fourier,
    polynomial_filter,
    spectral_filter,
)


def made():
    drawn = nx.gnp_random_graph(15, 0.2, seed=3)
    drawn.add_node(15)  # by itself
    return drawn, Graph.from_networkx(drawn)


RNG = np.random.default_rng(0)
SIGNALS = [RNG.normal(size=16), RNG.normal(size=(16, 3))]


@pytest.mark.parametrize("kind", LAPLACIANS)
def test_eigenvectors_and_eigenvalues_rebuild_the_laplacian(kind):
    _, graph = made()
    values, vectors, inverse = graph_spectrum(graph, kind)
    matrix = graph_laplacian(graph, kind)
    np.testing.assert_allclose(vectors @ np.diag(values) @ inverse, matrix, atol=1e-8)
    np.testing.assert_allclose(vectors @ inverse, np.eye(16), atol=1e-8)
    assert (np.diff(values) >= -1e-12).all()


def test_the_path_has_cosines():
    """λₖ = 2 − 2cos(πk/n), uₖ ∝ cos(πk(i + ½)/n)."""
    n = 9
    values, vectors, _ = graph_spectrum(Graph.from_networkx(nx.path_graph(n)))
    k = np.arange(n)
    np.testing.assert_allclose(values, 2 - 2 * np.cos(np.pi * k / n), atol=1e-10)
    wanted = np.cos(np.pi * np.outer(k + 0.5, k) / n)
    overlap = np.abs((vectors * wanted).sum(0)) / np.linalg.norm(wanted, axis=0)
    np.testing.assert_allclose(overlap, 1, atol=1e-8)


def test_zero_is_an_eigenvalue_as_often_as_there_are_pieces():
    drawn, graph = made()
    for kind in LAPLACIANS:
        values = graph_spectrum(graph, kind).values
        assert (values < 1e-9).sum() == nx.number_connected_components(drawn)
        assert kind == "combinatorial" or values[-1] <= 2 + 1e-9


def test_the_laplacian_sums_squared_differences():
    """xᵀLx = Σ (xᵢ − xⱼ)² over edges, and (Lx)ᵢ = Σⱼ aᵢⱼ(xᵢ − xⱼ)."""
    drawn, graph = made()
    x = SIGNALS[0]
    matrix = graph_laplacian(graph)
    assert x @ matrix @ x == pytest.approx(sum((x[a] - x[b]) ** 2 for a, b in drawn.edges))
    np.testing.assert_allclose(matrix @ x, [sum(x[i] - x[j] for j in drawn[i]) for i in drawn], atol=1e-10)


@pytest.mark.parametrize("kind", LAPLACIANS)
@pytest.mark.parametrize("signal", SIGNALS)
def test_the_fourier_transform_is_inverted(kind, signal):
    _, graph = made()
    np.testing.assert_allclose(
        inverse_graph_fourier(graph, graph_fourier(graph, signal, kind), kind), signal, atol=1e-8
    )


@pytest.mark.parametrize("kind", LAPLACIANS)
@pytest.mark.parametrize("signal", SIGNALS)
def test_a_polynomial_filter_is_its_spectral_form(kind, signal):
    """Σ αₖ Lᵏ x = U (Σ αₖ Λᵏ) U⁻¹ x, and that with the powers of the dense matrix."""
    _, graph = made()
    alpha = [0.5, -1.0, 0.25, 0.1]
    filtered = polynomial_filter(graph, signal, alpha, kind)
    by_frequency = spectral_filter(graph, signal, lambda v: np.polynomial.polynomial.polyval(v, alpha), kind)
    np.testing.assert_allclose(filtered, by_frequency, rtol=1e-8, atol=1e-8)
    matrix = graph_laplacian(graph, kind)
    powers = sum(a * np.linalg.matrix_power(matrix, k) @ signal for k, a in enumerate(alpha))
    np.testing.assert_allclose(filtered, powers, rtol=1e-8, atol=1e-8)


def test_a_polynomial_of_degree_k_reaches_k_edges_far():
    graph = Graph.from_networkx(nx.path_graph(9))
    impulse = np.eye(9)[0]
    for degree in range(5):
        filtered = polynomial_filter(graph, impulse, [1.0] * (degree + 1))
        assert (np.abs(filtered) > 1e-12).nonzero()[0].max() == degree


def test_convolution_is_a_product_of_frequencies():
    _, graph = made()
    x, y, z = RNG.normal(size=(3, 16))
    np.testing.assert_allclose(
        graph_fourier(graph, convolve(graph, x, y)), graph_fourier(graph, x) * graph_fourier(graph, y), atol=1e-8
    )
    once = convolve(graph, convolve(graph, x, y), z)
    np.testing.assert_allclose(once, convolve(graph, x, convolve(graph, y, z)), atol=1e-8)


def test_energy_is_kept_by_orthogonal_transforms():
    _, graph = made()
    for kind in ("combinatorial", "symmetric"):
        assert np.linalg.norm(graph_fourier(graph, SIGNALS[0], kind)) == pytest.approx(np.linalg.norm(SIGNALS[0]))


def test_what_does_not_fit_is_named():
    graph = Graph(np.ones((3, 1)), [[0, 1], [1, 2]])
    with pytest.raises(DataError, match=r"edges without their opposites; frequencies need graph.undirected\(\)"):
        graph_spectrum(graph)
    with pytest.raises(DataError, match=r"signal has shape \(2,\); it must be .* with 3 nodes"):
        graph_fourier(graph.undirected(), [1.0, 2.0])
    with pytest.raises(DataError, match=r"must be Likely's Graph; found networkx\.Graph\. Graph\.from_networkx"):
        graph_laplacian(nx.path_graph(3))
    with pytest.raises(SpecError, match="Unknown Laplacian 'signless'"):
        graph_laplacian(graph.undirected(), "signless")
