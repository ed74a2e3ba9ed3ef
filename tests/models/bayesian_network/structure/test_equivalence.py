"""Equivalence classes: their definition over all graphs of 4 variables, and back to a graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.core.errors import SpecError
from likely.models.bayesian_network import Dag, structural_hamming_distance
from likely.models.bayesian_network.structure.equivalence import as_dag, equivalence_class


def graphs(count=4):
    names = list("abcd"[:count])
    pairs = list(itertools.combinations(range(count), 2))
    for ways in itertools.product(range(3), repeat=len(pairs)):
        edges = [pair[:: 1 if way == 1 else -1] for pair, way in zip(pairs, ways, strict=True) if way]
        try:
            yield Dag.from_edges([*names, *((names[a], names[b]) for a, b in edges)])
        except SpecError:
            continue


def signature(dag):
    """Edges without arrows, and colliders whose parents are apart."""
    joined = frozenset(frozenset((child, own)) for child, parents in enumerate(dag.parents) for own in parents)
    colliders = frozenset(
        (frozenset(pair), child)
        for child, parents in enumerate(dag.parents)
        for pair in itertools.combinations(parents, 2)
        if frozenset(pair) not in joined
    )
    return joined, colliders


def test_a_class_has_an_arrow_where_all_its_graphs_agree():
    groups: dict[object, list[Dag]] = {}
    for dag in graphs():
        groups.setdefault(signature(dag), []).append(dag)
    for group in groups.values():
        seen = np.zeros((4, 4), bool)
        for dag in group:
            for child, parents in enumerate(dag.parents):
                seen[list(parents), child] = True
        for dag in group:
            np.testing.assert_array_equal(equivalence_class(dag.parents), seen)
        edges = as_dag(seen, np.zeros_like(seen), ~np.eye(4, dtype=bool))
        again = Dag.from_edges([*"abcd", *(("abcd"[a], "abcd"[b]) for a, b in edges)])
        assert signature(again) == signature(group[0])


def test_distance_is_one_of_classes():
    """0 in a class, symmetric, and at least the difference of the skeletons."""
    assert structural_hamming_distance([("a", "b")], [("b", "a")]) == 0
    assert structural_hamming_distance(["a", "b"], [("a", "b")]) == 1
    some = list(graphs())[::25]
    edges = [[*"abcd", *(("abcd"[a], "abcd"[b]) for b, own in enumerate(dag.parents) for a in own)] for dag in some]
    for one, other in itertools.combinations(range(len(some)), 2):
        distance = structural_hamming_distance(edges[one], edges[other])
        skeletons = len(signature(some[one])[0] ^ signature(some[other])[0])
        assert distance == structural_hamming_distance(edges[other], edges[one]) >= skeletons
        assert (distance == 0) == (signature(some[one]) == signature(some[other]))


def test_marks_that_no_graph_has_become_one():
    """A circle of arrows is opened; what is required stays, what is not allowed does not come in."""
    circle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool)
    required = np.zeros((3, 3), bool)
    required[0, 1] = required[1, 2] = True
    edges = as_dag(circle, required, ~np.eye(3, dtype=bool) & ~required.T)
    assert {(0, 1), (1, 2)} <= set(edges)
    Dag.from_edges([("abc"[a], "abc"[b]) for a, b in edges])
    allowed = circle.copy()
    assert len(as_dag(circle, np.zeros((3, 3), bool), allowed)) == 2


@pytest.mark.parametrize("edges", [[("a", "b"), ("b", "a")]])
def test_circles_are_refused(edges):
    with pytest.raises(SpecError, match="cycle"):
        structural_hamming_distance(edges, [("a", "b")])
