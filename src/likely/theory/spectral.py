"""Frequencies of graphs: the eigenvectors of a Laplacian are to a graph what sines are to a line.

    L = U Λ U⁻¹,        x̂ = U⁻¹ x,        x = U x̂,        x * y = U (x̂ ⊙ ŷ)
    g(L) x = U g(Λ) U⁻¹ x,     and for polynomials   Σₖ αₖ Lᵏ x = U (Σₖ αₖ Λᵏ) U⁻¹ x,   without eigenvectors

U is orthogonal for the combinatorial and the symmetric Laplacian. That of the random walk, D^(-1) L, has
U = D^(-1/2) V with V the eigenvectors of the symmetric one, and the same eigenvalues. Graphs must be undirected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from ..core.errors import DataError
from ..data.graph import Graph, Graphs
from ..networks.layers.graph import LaplacianKind, adjacency, laplacian

__all__ = [
    "Spectrum",
    "convolve",
    "graph_fourier",
    "graph_laplacian",
    "graph_spectrum",
    "inverse_graph_fourier",
    "polynomial_filter",
    "spectral_filter",
]


class Spectrum(NamedTuple):
    """L = U Λ U⁻¹ of a graph: eigenvalues in ascending order, the columns of U, and U⁻¹."""

    values: np.ndarray
    vectors: np.ndarray
    inverse: np.ndarray


def graph_laplacian(graph: Graph, kind: LaplacianKind = "combinatorial") -> np.ndarray:
    """D − A, or "symmetric" D^(-1/2) (D − A) D^(-1/2), or "random_walk" D^(-1) (D − A), as a dense matrix.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> graph_laplacian(path)
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    return laplacian(_whole(graph), kind).dense().numpy()


def graph_spectrum(graph: Graph, kind: LaplacianKind = "combinatorial") -> Spectrum:
    """Eigenvalues, from 0 on, and eigenvectors of a Laplacian. As often as 0 is one, the graph has a part by itself.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> (graph_spectrum(path).values.round(6) + 0.0).tolist()
    [0.0, 1.0, 3.0]
    """
    matrix = graph_laplacian(graph, "symmetric" if kind == "random_walk" else kind)
    values, vectors = np.linalg.eigh(matrix)
    if kind != "random_walk":
        return Spectrum(values, vectors, vectors.T)
    degree = adjacency(_whole(graph)).dense().sum(1).numpy()
    root = np.sqrt(np.where(degree > 0, degree, 1.0))[:, None]
    return Spectrum(values, vectors / root, (vectors * root).T)


def graph_fourier(graph: Graph, signal: Any, kind: LaplacianKind = "combinatorial") -> np.ndarray:
    """x̂ = U⁻¹ x: how much of each frequency a signal (nodes,) or (nodes, d) has.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> abs(graph_fourier(path, [1.0, 1.0, 1.0])).round(4)  # a constant has frequency 0 alone
    array([1.7321, 0.    , 0.    ])
    """
    return graph_spectrum(graph, kind).inverse @ _signal(graph, signal)


def inverse_graph_fourier(graph: Graph, coefficients: Any, kind: LaplacianKind = "combinatorial") -> np.ndarray:
    """x = U x̂: the signal with these amounts of each frequency.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> inverse_graph_fourier(path, graph_fourier(path, [1.0, 5.0, 2.0])).round(6)
    array([1., 5., 2.])
    """
    return graph_spectrum(graph, kind).vectors @ _signal(graph, coefficients)


def convolve(graph: Graph, first: Any, second: Any, kind: LaplacianKind = "combinatorial") -> np.ndarray:
    """x * y = U (x̂ ⊙ ŷ): the product of two signals in the frequencies of the graph.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> x, y = [1.0, 5.0, 2.0], [0.0, 1.0, 0.0]
    >>> bool(np.allclose(convolve(path, x, y), convolve(path, y, x)))
    True
    """
    spectrum = graph_spectrum(graph, kind)
    hats = [spectrum.inverse @ _signal(graph, x) for x in (first, second)]
    return spectrum.vectors @ (hats[0] * hats[1])


def spectral_filter(
    graph: Graph,
    signal: Any,
    response: Callable[[np.ndarray], np.ndarray],
    kind: LaplacianKind = "combinatorial",
) -> np.ndarray:
    """g(L) x = U g(Λ) U⁻¹ x, where `response` is g, the gain at each eigenvalue.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> spectral_filter(path, [1.0, 5.0, 3.0], lambda eigenvalue: eigenvalue < 0.5).round(6)  # its mean is left
    array([3., 3., 3.])
    """
    values, vectors, inverse = graph_spectrum(graph, kind)
    x = _signal(graph, signal)
    gain = np.asarray(response(values), float).reshape(-1, *(1 for _ in x.shape[1:]))
    return vectors @ (gain * (inverse @ x))


def polynomial_filter(
    graph: Graph, signal: Any, coefficients: Sequence[float], kind: LaplacianKind = "combinatorial"
) -> np.ndarray:
    """Σₖ αₖ Lᵏ x by sparse products alone: node by node it looks as many edges far as the polynomial's degree.

    >>> path = Graph(np.ones((3, 1)), [[0, 1], [1, 2]]).undirected()
    >>> polynomial_filter(path, [1.0, 0.0, 0.0], [0.0, 1.0])  # L x
    array([ 1., -1.,  0.])
    """
    matrix = laplacian(_whole(graph), kind)
    x = torch.from_numpy(_signal(graph, signal))
    columns = x.reshape(len(x), -1)
    out = torch.zeros_like(columns)
    for coefficient in reversed(list(coefficients)):  # Horner's rule
        out = matrix @ out + coefficient * columns
    return out.reshape(x.shape).numpy()


def _whole(graph: Graph) -> Graphs:
    if not isinstance(graph, Graph):
        received = f"{type(graph).__module__.partition('.')[0]}.{type(graph).__name__}"
        raise DataError(f"graph must be Likely's Graph; found {received}. Graph.from_networkx reads networkx's graphs.")
    whole = Graphs.of([Graph(graph.features[:, :1].double(), graph.edges)])
    matrix = adjacency(whole)
    there, back = matrix.parts, matrix.T.parts
    same = all(a.shape == b.shape and bool((a == b).all()) for a, b in zip(there, back, strict=True))
    if not same:
        raise DataError("graph has edges without their opposites; frequencies need graph.undirected().")
    return whole


def _signal(graph: Graph, values: Any) -> np.ndarray:
    signal = np.asarray(values, float)
    if signal.ndim not in (1, 2) or len(signal) != len(graph):
        raise DataError(f"signal has shape {signal.shape}; it must be (nodes,) or (nodes, d) with {len(graph)} nodes.")
    return signal
