"""Where to draw a directed acyclic graph: parents above children, with few crossings and short edges.

Each variable goes as low as its children allow and below all its parents. An edge that skips layers gets a bend in
each. Layers are sorted by the mean place of their neighbours, up and down, and the order with the fewest crossings is
kept; then places move towards the mean of their neighbours as far as the order allows, which is isotonic regression.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sklearn.isotonic import isotonic_regression

from .dag import Dag

__all__ = ["Drawing", "draw_layers"]

SWEEPS = 12
BEND = 0.45
"""The room of a bend, where a variable has 1."""


@dataclass(frozen=True)
class Drawing:
    """The place (x, layer) of each variable, and the bends of each edge (parent, child) from top to bottom."""

    places: np.ndarray  # (n, 2)
    bends: dict[tuple[int, int], np.ndarray]


def draw_layers(dag: Dag) -> Drawing:
    """Places for all variables; x is in units of one variable's room, and layers count from 0 at the top.

    >>> draw_layers(Dag.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])).places.tolist()
    [[0.0, 0.0], [-0.5, 1.0], [0.5, 1.0], [0.0, 2.0]]
    """
    layer = _layers(dag)
    edges, chains = _with_bends(dag, layer)
    count = len(layer)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        above[lower].append(upper)
        below[upper].append(lower)
    rows = [[node for node in range(count) if layer[node] == level] for level in range(max(layer) + 1)]
    rows = _fewest_crossings(rows, above, below)
    room = np.where(np.arange(count) < len(dag.names), 1.0, BEND)
    x = _spread(rows, above, below, room)
    places = np.column_stack([x, np.array(layer, float)])
    return Drawing(places[: len(dag.names)], {edge: places[chain] for edge, chain in chains.items()})


def _layers(dag: Dag) -> list[int]:
    layer = [0] * len(dag.names)
    for variable in dag.order:
        layer[variable] = max((layer[parent] + 1 for parent in dag.parents[variable]), default=0)
    for variable in reversed(dag.order):
        if dag.children[variable]:
            layer[variable] = min(layer[child] for child in dag.children[variable]) - 1
    return layer


def _with_bends(dag: Dag, layer: list[int]) -> tuple[list[tuple[int, int]], dict[tuple[int, int], list[int]]]:
    """Edges between neighbouring layers alone, and the bends that were put into each edge; `layer` grows by them."""
    edges: list[tuple[int, int]] = []
    chains: dict[tuple[int, int], list[int]] = {}
    for child, parents in enumerate(dag.parents):
        for parent in parents:
            chain = list(range(len(layer), len(layer) + layer[child] - layer[parent] - 1))
            layer.extend(range(layer[parent] + 1, layer[child]))
            path = [parent, *chain, child]
            edges += pairwise(path)
            chains[parent, child] = chain
    return edges, chains


def _fewest_crossings(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(SWEEPS):
        rows = [list(row) for row in rows]
        down = sweep % 2 == 0
        near = above if down else below
        place: dict[int, float] = {}
        for level in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            now = {node: rank for rank, node in enumerate(rows[level])}
            rows[level].sort(key=lambda node: _mean([place[neighbour] for neighbour in near[node]], now[node]))
            place.update({node: rank for rank, node in enumerate(rows[level])})
        crossed = _crossings(rows, below)
        if crossed < fewest:
            best, fewest = rows, crossed
    return best


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(rows: list[list[int]], below: list[list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        rank = {node: place for place, node in enumerate(lower)}
        ends = np.array([rank[child] for node in upper for child in sorted(below[node], key=rank.__getitem__)])
        total += sum(int((ends[:place] > end).sum()) for place, end in enumerate(ends))
    return total


def _spread(rows: list[list[int]], above: list[list[int]], below: list[list[int]], room: np.ndarray) -> np.ndarray:
    """x of every node: as near to the mean of its neighbours as its row's order and room allow."""
    x = np.zeros(len(room))
    offsets = [np.cumsum(room[row]) - room[row] / 2 for row in rows]
    for row, offset in zip(rows, offsets, strict=True):
        x[row] = offset - room[row].sum() / 2
    for sweep in range(4 * SWEEPS):
        down = sweep % 2 == 0
        for level in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            row, offset = rows[level], offsets[level]
            wanted = [_mean([x[neighbour] for neighbour in above[node] + below[node]], x[node]) for node in row]
            x[row] = isotonic_regression(np.array(wanted) - offset) + offset
    return x
