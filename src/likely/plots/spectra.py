"""The picture of a graph's frequencies: the eigenvalues of its Laplacian, or one eigenvector drawn on the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..data.graph import Graph
from ..networks.layers.graph import LaplacianKind
from ..theory.spectral import graph_spectrum
from .graph_layout import edge_pairs, node_places
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["spectrum"]

NAMES = {
    "combinatorial": "Laplacian D − A",
    "symmetric": "symmetric Laplacian",
    "random_walk": "random-walk Laplacian",
}
ZERO = 1e-9
"""Eigenvalues (and, of an eigenvector, entries) up to this are 0."""


def spectrum(
    graph: Graph,
    vector: int | None = None,
    kind: LaplacianKind = "combinatorial",
    *,
    places: Any = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Eigenvalues of a Laplacian in ascending order; with `vector`, the eigenvector of that number on the graph.

    Nodes are blue where the eigenvector is positive and orange where it is negative, and larger the further from 0;
    an edge between the two colours is one that the eigenvector changes its sign along. `places` are coordinates of the
    nodes (n, 2); without them they follow the distances in the graph.

    >>> path = Graph(np.ones((4, 1)), [[0, 1, 2], [1, 2, 3]]).undirected()
    >>> spectrum(path).get_title(loc="left")
    'The graph is in one piece: 0 is an eigenvalue once'
    >>> spectrum(path, 1).get_title(loc="left")
    'Eigenvector 1 changes its sign along 1 of 3 edges'
    """
    values, vectors, _ = graph_spectrum(graph, kind)
    if vector is None:
        return _values(values, kind, title, axes_of(ax))
    if not isinstance(vector, int | np.integer) or not -len(values) <= vector < len(values):
        raise DataError(f"vector={vector!r} must be the number of an eigenvector: 0 to {len(values) - 1}.")
    number = int(vector) % len(values)
    own = axes_of(ax, 5.6, 4.6)
    return _vector(graph, number, values, vectors[:, number], kind, places, title, own)


def _values(values: np.ndarray, kind: str, title: str | None, ax: Axes) -> Axes:
    from matplotlib.ticker import MaxNLocator

    pieces = int((values <= ZERO * max(1.0, values[-1])).sum())
    number = np.arange(len(values))
    lines = len(values) <= 60
    if lines:
        ax.vlines(number, 0, values, color=MAIN, linewidth=1.2, alpha=0.4)
    ax.plot(number, values, "o" if lines else "-", color=MAIN, markersize=4, linewidth=1.6)
    ax.plot(number[:pieces], values[:pieces], "o", color=ACCENT, markersize=5, zorder=3, clip_on=False)
    finding = "The graph is in one piece: 0 is an eigenvalue once"
    if pieces > 1:
        finding = f"The graph is in {pieces} pieces: 0 is an eigenvalue {pieces} times"
    note = f"{len(values)} eigenvalues of the {NAMES[kind]}"
    if len(values) > pieces:
        note += f"; the first above 0 is {values[pieces]:.3g}"
    finish(ax, title=titled(title, finding), note=note, x="number of the eigenvector", y="eigenvalue")
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _vector(
    graph: Graph,
    number: int,
    values: np.ndarray,
    vector: np.ndarray,
    kind: str,
    places: Any,
    title: str | None,
    ax: Axes,
) -> Axes:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LinearSegmentedColormap

    at, pairs = node_places(graph, places), edge_pairs(graph)
    largest = float(np.abs(vector).max())
    side = vector > -ZERO * largest  # what is 0 but for rounding goes with the positive ones
    crossed = side[pairs[:, 0]] != side[pairs[:, 1]]
    ax.add_collection(LineCollection(list(at[pairs[~crossed]]), colors=MUTED, linewidths=0.9, alpha=0.5, zorder=1))
    ax.add_collection(LineCollection(list(at[pairs[crossed]]), colors=INK, linewidths=1.3, linestyles=":", zorder=1))
    relative = np.abs(vector) / largest
    room = 300 / np.sqrt(max(1.0, len(graph) / 20))
    ax.scatter(
        at[:, 0],
        at[:, 1],
        s=room * (0.15 + 0.85 * relative),
        c=vector,
        cmap=LinearSegmentedColormap.from_list("signs", [ACCENT, "#F4F4F4", MAIN]),
        vmin=-largest,
        vmax=largest,
        edgecolors=INK,
        linewidths=0.7,
        zorder=2,
    )
    finding = f"Eigenvector {number} changes its sign along {int(crossed.sum())} of {len(pairs)} edges"
    if not crossed.any():
        finding = f"Eigenvector {number} changes its sign along no edge"
    note = f"{NAMES[kind]}, eigenvalue {abs(values[number]):.3g}; blue is positive, orange negative, dotted a change"
    finish(ax, title=titled(title, finding), note=note, x="", y="", grid=None)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.margins(0.1)
    ax.autoscale_view()
    return ax
