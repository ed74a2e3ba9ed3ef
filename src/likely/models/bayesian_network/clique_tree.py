"""Clique trees: the graph made chordal, its cliques joined so that each variable's cliques hang together.

    p(x) = ∏_cliques p(x_C) / ∏_separators p(x_S)

Marry parents, eliminate the variables one by one (joining all neighbours of each), and keep the cliques that appear.
The order is min-fill: next comes the variable that adds fewest edges, and among those the one with the smallest table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from .dag import Dag

__all__ = ["CliqueTree", "clique_tree", "eliminate"]


@dataclass(frozen=True)
class CliqueTree:
    """Cliques with every parent before its children; the first one is the root.

    `cliques[c]` lists the variables that c shares with `parent[c]` first: as many as `shared[c]`. So a clique's table,
    one row for each state of the separator, has in its rows what is left when that state is known.
    """

    cliques: tuple[tuple[int, ...], ...]
    parent: tuple[int, ...]
    shared: tuple[int, ...]

    def separator(self, clique: int) -> tuple[int, ...]:
        """The variables that a clique shares with its parent."""
        return self.cliques[clique][: self.shared[clique]]


def clique_tree(dag: Dag, sizes: Sequence[int]) -> CliqueTree:
    """The clique tree of a graph whose variables have `sizes` states.

    The variables are put back from the last eliminated to the first: one whose remaining neighbours are all of an
    existing clique joins it, any other starts a clique below the one that holds these neighbours. What comes out are
    the maximal cliques, joined by a spanning tree of greatest total separator size: each variable's cliques hang
    together (the running intersection property).

    >>> tree = clique_tree(Dag.from_edges([("a", "b"), ("b", "c"), ("c", "d")]), [2, 2, 2, 2])
    >>> [sorted(clique) for clique in tree.cliques], [tree.separator(clique) for clique in range(3)]
    ([[2, 3], [1, 2], [0, 1]], [(), (2,), (1,)])
    """
    order, later = eliminate(dag.moral(), sizes)
    rank = {variable: place for place, variable in enumerate(order)}
    cliques: list[list[int]] = []
    parent: list[int] = []
    shared: list[int] = []
    home: dict[int, int] = {}
    for variable in reversed(order):
        separator = sorted(later[variable])
        above = home[min(separator, key=rank.__getitem__)] if separator else 0
        if cliques and separator and len(separator) == len(cliques[above]):
            cliques[above].append(variable)
            home[variable] = above
            continue
        home[variable] = len(cliques)
        cliques.append([*separator, variable])
        parent.append(above)
        shared.append(len(separator))
    return CliqueTree(tuple(map(tuple, cliques)), tuple(parent), tuple(shared))


def eliminate(neighbours: Sequence[set[int]], sizes: Sequence[int]) -> tuple[list[int], list[set[int]]]:
    """A min-fill order, and for each variable its neighbours that were still there when it went.

    >>> square = [{1, 3}, {0, 2}, {1, 3}, {0, 2}]
    >>> eliminate(square, [2, 2, 2, 2])
    ([0, 1, 2, 3], [{1, 3}, {2, 3}, {3}, set()])
    """
    graph = [set(around) for around in neighbours]
    weight = [math.log(size) for size in sizes]

    def key(variable: int) -> tuple[int, float, int]:
        around = graph[variable]
        joined = sum(len(around & graph[neighbour]) for neighbour in around)
        missing = (len(around) * (len(around) - 1) - joined) // 2
        return missing, sum(weight[neighbour] for neighbour in around) + weight[variable], variable

    keys = {variable: key(variable) for variable in range(len(graph))}
    heap = list(keys.values())
    heapify(heap)
    order: list[int] = []
    later: list[set[int]] = [set() for _ in graph]
    while heap:
        entry = heappop(heap)
        variable = entry[2]
        if keys.get(variable) != entry:
            continue  # its neighbourhood changed since
        del keys[variable]
        order.append(variable)
        around = later[variable] = graph[variable]
        changed = set(around)
        for neighbour in around:
            graph[neighbour].discard(variable)
        for neighbour in around:
            for other in around - graph[neighbour] - {neighbour}:
                changed |= graph[neighbour] & graph[other]
                graph[neighbour].add(other)
                graph[other].add(neighbour)
        for touched in changed:
            keys[touched] = key(touched)
            heappush(heap, keys[touched])
    return order, later
