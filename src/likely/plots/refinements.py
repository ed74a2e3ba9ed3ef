"""The picture of Weisfeiler and Lehman's test: a graph whose nodes have the colours that refinement gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..theory.weisfeiler_lehman import graph_of, weisfeiler_lehman
from .graph_layout import edge_pairs, node_places
from .style import INK, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["refinement"]

COLOURS = ("#56B4E9", "#E69F00", "#5FC9A8", "#F0E442", "#DDA0C3", "#F28E5C", "#BBBBBB", "#8FB8DE")
"""Light enough to write on; the numbers tell apart what these colours do not."""
NUMBERED = 60
"""Nodes up to which the number of its colour stands in each."""


def refinement(
    graph: Any,
    iterations: int | None = None,
    *,
    places: Any = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """A graph with the colour of each node after so many refinements (None: until they are stable).

    Nodes of one colour are the same to every network that only sends messages along edges. `places` are coordinates of
    the nodes (n, 2); without them they follow the distances in the graph.

    >>> import networkx as nx
    >>> refinement(nx.path_graph(5)).get_title(loc="left")
    'Refinement tells 3 kinds of nodes apart among 5'
    """
    from matplotlib.collections import LineCollection

    drawn = graph_of(graph)
    colours = weisfeiler_lehman(drawn, iterations)
    kinds = int(colours.max()) + 1
    ax = axes_of(ax, 5.6, 4.6)
    at = node_places(drawn, places)
    ax.add_collection(LineCollection(list(at[edge_pairs(drawn)]), colors=MUTED, linewidths=0.9, alpha=0.6, zorder=1))
    size = 300 / np.sqrt(max(1.0, len(drawn) / 20))
    shades = [COLOURS[colour % len(COLOURS)] for colour in colours]
    ax.scatter(at[:, 0], at[:, 1], s=size, c=shades, edgecolors=INK, linewidths=0.7, zorder=2)
    if len(drawn) <= NUMBERED:
        for (x, y), colour in zip(at, colours, strict=True):
            ax.text(x, y, str(colour), ha="center", va="center_baseline", fontsize=8, color=INK, zorder=3)
    finding = f"Refinement tells {kinds} kinds of nodes apart among {len(drawn)}"
    if kinds in (1, len(drawn)):
        finding = "Refinement tells " + ("no two nodes apart" if kinds == 1 else "every node from every other")
    when = "until nothing changes" if iterations is None else f"{iterations} refinement" + "s" * (iterations != 1)
    note = f"Weisfeiler–Lehman colours, {when}; nodes of one number look the same to a graph network"
    finish(ax, title=titled(title, finding), note=note, x="", y="", grid=None)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.margins(0.1)
    ax.autoscale_view()
    return ax
