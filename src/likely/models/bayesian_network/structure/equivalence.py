"""Graphs that tell the same independences: the same edges without arrows, and the same colliders.

A class of such graphs is drawn as a partly directed one, with arrows where all of them agree. Here it is a matrix of
marks: marks[a, b] and not marks[b, a] is a → b, both are a – b.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..dag import Dag

__all__ = ["as_dag", "complete", "equivalence_class", "structural_hamming_distance"]


def structural_hamming_distance(first: Any, second: Any) -> int:
    """The number of pairs of variables whose edge differs between the equivalence classes of two graphs.

    Graphs are lists of edges, as `BayesianNetwork(edges)` takes them and `edges_` holds them. An edge that one of them
    lacks, that points the other way, or that has an arrow in one class alone counts 1: graphs that no data can tell
    apart have distance 0.

    >>> chain, fork = [("a", "b"), ("b", "c")], [("b", "a"), ("b", "c")]
    >>> collider = [("a", "b"), ("c", "b")]
    >>> structural_hamming_distance(chain, fork), structural_hamming_distance(chain, collider)
    (0, 2)
    """
    graphs = [Dag.from_edges(first), Dag.from_edges(second)]
    names = list(dict.fromkeys(name for dag in graphs for name in dag.names))
    marks = []
    for dag in graphs:
        own = np.zeros((len(names), len(names)), bool)
        place = [names.index(name) for name in dag.names]
        own[np.ix_(place, place)] = equivalence_class(dag.parents)
        marks.append(own)
    differ = (marks[0] != marks[1]) | (marks[0].T != marks[1].T)
    return int(np.triu(differ, 1).sum())


def equivalence_class(parents: Sequence[Sequence[int]]) -> np.ndarray:
    """The marks of all graphs that tell the same independences as one.

    >>> equivalence_class([(), (0,), (1,)]).astype(int)  # a chain may be read in both directions
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    arrow = np.zeros((len(parents), len(parents)), bool)
    for child, own in enumerate(parents):
        arrow[list(own), child] = True
    marks = arrow | arrow.T
    for child, own in enumerate(parents):
        for one, other in combinations(own, 2):
            if not marks[one, other] and not marks[other, one]:
                marks[child, [one, other]] = False
    return complete(marks)


def complete(marks: np.ndarray) -> np.ndarray:
    """Put all arrows that follow: no new collider may arise, and no circle (Meek's four rules).

    >>> complete(np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]], bool)).astype(int)  # a → b – c
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])
    """
    marks = marks.copy()
    changed = True
    while changed:
        changed = False
        arrow, line = marks & ~marks.T, marks & marks.T
        apart = ~(marks | marks.T)
        np.fill_diagonal(apart, False)
        for one, other in np.argwhere(line):
            if marks[one, other] and marks[other, one] and _must_point(one, other, arrow, line, apart):
                marks[other, one] = False
                changed = True
                break
    return marks


def _must_point(one: int, other: int, arrow: np.ndarray, line: np.ndarray, apart: np.ndarray) -> bool:
    """Whether one – other can only be one → other."""
    if (arrow[:, one] & apart[:, other]).any():  # c → one – other would become a collider
        return True
    if (arrow[one] & arrow[:, other]).any():  # one → c → other: the other way is a circle
        return True
    between = np.flatnonzero(line[one] & arrow[:, other])  # one – c → other, by two that are apart
    if apart[np.ix_(between, between)].any():
        return True
    near = line[one] | arrow[one] | arrow[:, one]
    for middle in np.flatnonzero(near & arrow[:, other]):  # one – d → c → other, with d and other apart
        if (arrow[:, middle] & line[one] & apart[:, other]).any():
            return True
    return False


def as_dag(marks: np.ndarray, required: np.ndarray, allowed: np.ndarray) -> list[tuple[int, int]]:
    """The edges of a graph with these marks, all of them allowed and the required ones among them.

    A variable that no arrow leaves, and whose lines come from neighbours of all its other neighbours, may stand last;
    it is taken away with its edges, again and again. Marks that no graph has are kept as far as they go: where arrows
    lead in a circle, those of the variable with the fewest are turned, or dropped where they may not be.
    """
    marks, left = marks.copy(), set(range(len(marks)))
    edges: list[tuple[int, int]] = []
    while left:
        arrow, line, near = marks & ~marks.T, marks & marks.T, marks | marks.T
        sinks = [variable for variable in sorted(left) if not arrow[variable].any()]
        last = next((variable for variable in sinks if _may_stand_last(variable, line, near)), None)
        if last is None:
            free = sinks or [v for v in sorted(left) if not (required[v] & near[v]).any()]
            last = min(free, key=lambda variable: int(arrow[variable].sum()))
        edges += [(int(other), last) for other in np.flatnonzero(near[last]) if allowed[other, last]]
        marks[last] = marks[:, last] = False
        left.discard(last)
    return edges


def _may_stand_last(variable: int, line: np.ndarray, near: np.ndarray) -> bool:
    around = np.flatnonzero(near[variable])
    for other in np.flatnonzero(line[variable]):
        rest = around[around != other]
        if not near[other, rest].all():
            return False
    return True
