"""Directed acyclic graphs of named variables: p(x₁, …, xₙ) = ∏ᵢ p(xᵢ | parents of xᵢ)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

from ...core.errors import DataError, SpecError

__all__ = ["Dag", "closest"]


@dataclass(frozen=True)
class Dag:
    """Variables by name, and the parents of each as positions in `names`, in the order in which edges gave them.

    >>> dag = Dag.from_edges([("rain", "wet"), ("sprinkler", "wet"), "wind"])
    >>> dag.names
    ('rain', 'wet', 'sprinkler', 'wind')
    >>> dag.parents
    ((), (0, 2), (), ())
    >>> print(dag.factorisation())
    p(rain) p(sprinkler) p(wet | rain, sprinkler) p(wind)
    """

    names: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]

    @staticmethod
    def from_edges(edges: Any) -> Dag:
        """Pairs (parent, child); a name alone, or (name,), is a variable that may have no edge. Cycles are refused."""
        positions: dict[str, int] = {}
        parents: list[list[int]] = []
        for place, edge in enumerate(_entries(edges)):
            ends = []
            for name in _ends(edge, place):
                if name not in positions:
                    positions[name] = len(positions)
                    parents.append([])
                ends.append(positions[name])
            if len(ends) == 2:
                if ends[0] in parents[ends[1]]:
                    raise SpecError(f"edges has {edge[0]} → {edge[1]} twice; each edge is given once.")
                parents[ends[1]].append(ends[0])
        if not positions:
            raise SpecError('edges is empty; give pairs such as [("rain", "wet")], or names of variables.')
        dag = Dag(tuple(positions), tuple(tuple(family) for family in parents))
        _ = dag.order  # a cycle is found here, at the door
        return dag

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The variables with every parent before its children; otherwise in the order of `names`."""
        waiting = [len(parents) for parents in self.parents]
        ready = [variable for variable, count in enumerate(waiting) if count == 0]
        order: list[int] = []
        while ready:
            variable = heappop(ready)
            order.append(variable)
            for child in self.children[variable]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    heappush(ready, child)
        if len(order) < len(self.names):
            raise SpecError(f"edges hold a cycle: {self._cycle(set(order))}; turn or drop one of these edges.")
        return tuple(order)

    def _cycle(self, outside: set[int]) -> str:
        """Every variable that waits has a parent that waits, so going up from one must meet itself."""
        path = [next(variable for variable in range(len(self.names)) if variable not in outside)]
        while path[-1] not in path[:-1]:
            path.append(next(parent for parent in self.parents[path[-1]] if parent not in outside))
        circle = path[path.index(path[-1]) :]
        return " → ".join(self.names[variable] for variable in reversed(circle))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each variable."""
        children: list[list[int]] = [[] for _ in self.names]
        for child, parents in enumerate(self.parents):
            for parent in parents:
                children[parent].append(child)
        return tuple(tuple(own) for own in children)

    def position(self, name: Any) -> int:
        """Where a variable is in `names`; an unknown one is refused with the closest known name."""
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            raise DataError(f"There is no variable {name!r}.{closest(name, self.names)}") from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def family(self, variable: int) -> tuple[int, ...]:
        """The parents and, last, the variable: the axes of its table."""
        return (*self.parents[variable], variable)

    def markov_blanket(self, variable: int) -> tuple[int, ...]:
        """Parents, children and the children's other parents: given these, all others tell nothing more about it."""
        blanket = {*self.parents[variable], *self.children[variable]}
        for child in self.children[variable]:
            blanket.update(self.parents[child])
        return tuple(sorted(blanket - {variable}))

    def moral(self) -> list[set[int]]:
        """The neighbours of each variable once parents of a common child are married and arrows are dropped."""
        neighbours: list[set[int]] = [set() for _ in self.names]
        for variable in range(len(self.names)):
            family = self.family(variable)
            for member in family:
                neighbours[member].update(family)
        for variable, around in enumerate(neighbours):
            around.discard(variable)
        return neighbours

    def factorisation(self) -> str:
        """The joint distribution as the product the graph stands for, parents first."""
        factors = []
        for variable in self.order:
            given = ", ".join(self.names[parent] for parent in self.parents[variable])
            factors.append(f"p({self.names[variable]} | {given})" if given else f"p({self.names[variable]})")
        return " ".join(factors)


def closest(name: Any, known: Iterable[Any]) -> str:
    """A hint for a message: the known name that may have been meant, or the first few."""
    by_fold = {str(candidate).casefold(): candidate for candidate in known}
    close = get_close_matches(str(name).casefold(), by_fold, n=1)
    if close:
        return f" Did you mean {by_fold[close[0]]!r}?"
    names = list(by_fold.values())
    return f" There are {', '.join(map(repr, names[:6]))}{', …' if len(names) > 6 else ''}."


def _entries(edges: Any) -> Sequence[Any]:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise SpecError(f'edges must be a list of pairs (parent, child) such as [("rain", "wet")]; found {edges!r}.')
    return list(edges)


def _ends(edge: Any, place: int) -> tuple[str, ...]:
    ends = (edge,) if isinstance(edge, str) else tuple(edge) if isinstance(edge, Sequence) else ()
    if len(ends) not in (1, 2) or not all(isinstance(name, str) and name for name in ends):
        raise SpecError(f"edges[{place}] is {edge!r}; it must be (parent, child), two names, or one name alone.")
    if len(ends) == 2 and ends[0] == ends[1]:
        raise SpecError(f"edges hold a cycle: {ends[0]} → {ends[1]}; drop this edge.")
    return ends
