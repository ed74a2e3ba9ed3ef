"""Bayes ball: which variables can still tell something about which, read from the graph alone.

a and b are independent given C in every distribution that factorises over the graph, if no ball from a can roll to b.
It passes through a variable outside C, but not from parent to parent; it passes from parent to parent at a collider
that is in C, or has a descendant in C.
"""

from __future__ import annotations

from collections.abc import Collection

from .dag import Dag

__all__ = ["d_separated", "reached"]


def d_separated(dag: Dag, first: Collection[int], second: Collection[int], given: Collection[int] = ()) -> bool:
    """Whether `given` blocks every path between two sets of variables, given as positions.

    >>> collider = Dag.from_edges([("rain", "wet"), ("sprinkler", "wet")])
    >>> rain, wet, sprinkler = 0, 1, 2
    >>> d_separated(collider, [rain], [sprinkler]), d_separated(collider, [rain], [sprinkler], given=[wet])
    (True, False)
    """
    return reached(dag, first, given).isdisjoint(second)


def reached(dag: Dag, start: Collection[int], given: Collection[int] = ()) -> set[int]:
    """The variables outside `given` that a ball from `start` comes to, in time linear in the number of edges.

    >>> chain = Dag.from_edges([("a", "b"), ("b", "c")])
    >>> sorted(reached(chain, [0])), sorted(reached(chain, [0], given=[1]))
    ([0, 1, 2], [0])
    """
    blocked = set(given)
    from_below = [variable for variable in start if variable not in blocked]
    from_above: list[int] = []
    seen_below, seen_above = set(from_below), set[int]()
    while from_below or from_above:
        up: list[int] = []
        down: list[int] = []
        if from_below:
            variable = from_below.pop()
            if variable not in blocked:
                up, down = list(dag.parents[variable]), list(dag.children[variable])
        else:
            variable = from_above.pop()
            if variable in blocked:
                up = list(dag.parents[variable])  # a collider that is known: the ball bounces to the other parents
            else:
                down = list(dag.children[variable])
        from_below += [parent for parent in up if parent not in seen_below]
        from_above += [child for child in down if child not in seen_above]
        seen_below.update(up)
        seen_above.update(down)
    return (seen_below | seen_above) - blocked
