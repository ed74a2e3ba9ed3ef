"""A clique tree as flat arrays, so that one compiled function can run over all its tables.

The tables of all cliques lie in one vector. A clique's table has a row for each state of its separator, and `lift`
tells which row belongs to each entry of the parent's table. Sums, maxima and draws over a row then need no index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.errors import DataError
from .clique_tree import CliqueTree
from .dag import Dag

__all__ = ["LIMIT", "Schedule", "schedule"]

LIMIT = 2**28
"""Entries that all clique tables may have together: 2 GB."""


class Schedule(NamedTuple):
    """Where everything is. C cliques, n variables; `…_start` are offsets, with one more entry than things."""

    start: np.ndarray  # (C + 1,) each clique in the vector of potentials
    rows: np.ndarray  # (C,) states of its separator; the root has one
    parent: np.ndarray  # (C,)
    lift_start: np.ndarray  # (C + 1,) each clique in `lift`
    lift: np.ndarray  # for each entry of the parent of a clique, the row of the clique
    home: np.ndarray  # (n,) the smallest clique that holds a variable
    stride: np.ndarray  # (n,) the distance of its states in that clique's table
    size: np.ndarray  # (n,) its number of states
    state_start: np.ndarray  # (n + 1,) its states in a vector over all states
    family_home: np.ndarray  # (n,) the smallest clique that holds the variable and its parents
    family_start: np.ndarray  # (n + 1,) each family in `family`
    family: np.ndarray  # for each entry of that clique, the entry in the vector of all conditional tables
    table_start: np.ndarray  # (n + 1,) each conditional table in the vector of all of them


def schedule(dag: Dag, sizes: Sequence[int], tree: CliqueTree) -> Schedule:
    """The arrays of a tree; a tree too large to hold is refused, with its largest clique.

    >>> from .clique_tree import clique_tree
    >>> dag = Dag.from_edges([("a", "b"), ("b", "c")])
    >>> plan = schedule(dag, [2, 3, 2], clique_tree(dag, [2, 3, 2]))
    >>> plan.start, plan.rows, plan.lift  # a clique (c, b), and below it (b, a)
    (array([ 0,  6, 12]), array([1, 3]), array([0, 1, 2, 0, 1, 2], dtype=int32))
    """
    entries = [_entries(clique, sizes) for clique in tree.cliques]
    links = [0, *(entries[tree.parent[clique]] for clique in range(1, len(entries)))]
    if sum(entries) + sum(links) > LIMIT:
        largest = tree.cliques[max(range(len(entries)), key=entries.__getitem__)]
        names = [dag.names[variable] for variable in largest]
        raise DataError(
            f"Exact inference needs clique tables of {sum(entries):.3g} entries; the largest clique joins {len(names)} "
            f"variables ({', '.join(names[:6])}{', …' if len(names) > 6 else ''}). Drop edges or states."
        )
    by_size = sorted(range(len(entries)), key=entries.__getitem__)
    holders: list[list[int]] = [[] for _ in dag.names]
    for clique in by_size:
        for variable in tree.cliques[clique]:
            holders[variable].append(clique)
    family_home = [_holder(dag.family(variable), holders, tree) for variable in range(len(dag.names))]
    home = [cliques[0] for cliques in holders]
    table_start = _offsets([_entries(dag.family(variable), sizes) for variable in range(len(dag.names))])
    lifts = [
        np.zeros(0, np.int32)
        if clique == 0
        else _places(tree.cliques[tree.parent[clique]], tree.separator(clique), sizes)
        for clique in range(len(entries))
    ]
    families = [
        _places(tree.cliques[family_home[variable]], dag.family(variable), sizes) + np.int32(table_start[variable])
        for variable in range(len(dag.names))
    ]
    strides = [_stride(tree.cliques[home[variable]], variable, sizes) for variable in range(len(dag.names))]
    return Schedule(
        start=_offsets(entries),
        rows=np.array([_entries(tree.separator(clique), sizes) for clique in range(len(entries))], np.int64),
        parent=np.array(tree.parent, np.int64),
        lift_start=_offsets(links),
        lift=np.concatenate(lifts),
        home=np.array(home, np.int64),
        stride=np.array(strides, np.int64),
        size=np.array(sizes, np.int64),
        state_start=_offsets(sizes),
        family_home=np.array(family_home, np.int64),
        family_start=_offsets([len(positions) for positions in families]),
        family=np.concatenate(families),
        table_start=table_start,
    )


def _entries(variables: Sequence[int], sizes: Sequence[int]) -> int:
    count = 1
    for variable in variables:
        count *= int(sizes[variable])
    return count


def _offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _stride(clique: Sequence[int], variable: int, sizes: Sequence[int]) -> int:
    return _entries(clique[clique.index(variable) + 1 :], sizes)


def _holder(family: Sequence[int], holders: list[list[int]], tree: CliqueTree) -> int:
    """The smallest clique that holds a whole family: parents are married, so there is one."""
    fewest = min(family, key=lambda variable: len(holders[variable]))
    return next(clique for clique in holders[fewest] if set(family) <= set(tree.cliques[clique]))


def _places(clique: Sequence[int], part: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """For each entry of a clique's table, the entry of the table of a part of its variables."""
    positions = np.zeros([sizes[variable] for variable in clique], np.int32)
    for axis, variable in enumerate(clique):
        if variable in part:
            along = np.arange(sizes[variable], dtype=np.int32) * np.int32(_stride(part, variable, sizes))
            positions += along.reshape([-1 if other == axis else 1 for other in range(len(clique))])
    return positions.reshape(-1)
