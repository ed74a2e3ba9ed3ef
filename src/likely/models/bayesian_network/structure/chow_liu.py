"""Chow–Liu: the tree of largest likelihood, a maximum spanning tree of mutual information.

    log p(rows | tree) = n Σ I(x; parent of x) − n Σ H(x)

Only the first sum depends on the tree, and it does not depend on where the tree is rooted.
"""

from __future__ import annotations

import numpy as np

from ....core.errors import SpecError
from ....core.spec import require
from ..dag import closest
from .base import Edge, Limits, Structure
from .sample import Sample

__all__ = ["ChowLiu"]


class ChowLiu(Structure):
    """The tree that makes the rows most probable, found exactly; each variable but `root` has one parent.

    Parameters
    ----------
    root : the variable without a parent; None takes the first one, or the first that lets edges have the directions
        they must.
    required : edges (parent, child) that are in the tree.
    forbidden : edges that are not; forbid both directions to keep two variables apart. Variables that this leaves
        without any connection are in trees of their own.

    See also `HillClimbing` and `PC`, whose graphs are no trees.

    >>> from likely import BayesianNetwork
    >>> rows = {"a": [0, 0, 1, 1, 0, 1], "b": [0, 0, 1, 1, 0, 0], "c": [0, 0, 1, 1, 1, 0]}
    >>> BayesianNetwork(structure=ChowLiu()).fit(rows).factorisation()
    'p(a) p(b | a) p(c | b)'
    """

    root: str | None = None
    required: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()

    def validate(self) -> None:
        super().validate()
        require(self.root is None or isinstance(self.root, str), self, "root", "the name of a variable, or None")

    def learn(self, sample: Sample, random: np.random.Generator) -> list[Edge]:
        limits = self.limits(sample.names)
        if self.root is not None and self.root not in sample.names:
            raise SpecError(f"ChowLiu(root={self.root!r}) is no variable.{closest(self.root, sample.names)}")
        neighbours = _spanning_tree(sample.mutual_information(), limits, sample.names)
        roots = range(len(sample.names)) if self.root is None else [sample.names.index(self.root)]
        edges: list[Edge] = []
        for tree in _trees(neighbours, roots):
            rooted = (_from_root(neighbours, root) for root in tree)
            fitting = next((own for own in rooted if all(limits.allowed[edge] for edge in own)), None)
            if fitting is None:
                raise SpecError(
                    "ChowLiu: no root gives the edges of the tree the directions that required and forbidden ask for; "
                    "a variable of a tree has one parent. Use HillClimbing."
                )
            edges += fitting
        return edges


def _spanning_tree(weight: np.ndarray, limits: Limits, names: tuple[str, ...]) -> list[list[int]]:
    """The neighbours of each variable in the heaviest forest: heavy pairs first, unless they close a circle."""
    needed = limits.required | limits.required.T
    possible = limits.allowed | limits.allowed.T | needed
    rows, columns = np.triu_indices(len(weight), 1)
    key = np.where(needed, np.inf, weight)[rows, columns]
    group = np.arange(len(weight))
    neighbours: list[list[int]] = [[] for _ in names]
    for pair in np.argsort(-key, kind="stable"):
        one, other = int(rows[pair]), int(columns[pair])
        if not possible[one, other]:
            continue
        if group[one] == group[other]:
            if needed[one, other]:
                raise SpecError(
                    f"ChowLiu(required=…): {names[one]} – {names[other]} closes a circle of required edges, and a tree "
                    "has none."
                )
            continue
        group[group == group[other]] = group[one]
        neighbours[one].append(other)
        neighbours[other].append(one)
    return neighbours


def _trees(neighbours: list[list[int]], roots: object) -> list[list[int]]:
    """The roots to try in each tree of the forest: those asked for, or all."""
    asked = list(roots)  # type: ignore[call-overload]
    left, trees = set(range(len(neighbours))), []
    while left:
        reached = {min(left)}
        waiting = list(reached)
        while waiting:
            fresh = [other for other in neighbours[waiting.pop()] if other not in reached]
            reached.update(fresh)
            waiting += fresh
        trees.append([root for root in asked if root in reached] or sorted(reached))
        left -= reached
    return trees


def _from_root(neighbours: list[list[int]], root: int) -> list[Edge]:
    """The edges of a tree, each away from the root."""
    edges: list[Edge] = []
    waiting = [(root, -1)]
    while waiting:
        variable, parent = waiting.pop()
        children = [child for child in neighbours[variable] if child != parent]
        edges += [(variable, child) for child in children]
        waiting += [(child, variable) for child in children]
    return edges
