"""What the graph tells alone, by the names of its variables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely import BayesianNetwork
from likely.core.errors import DataError

EDGES = [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"), ("f", "e")]


def test_d_separation_is_independence_in_a_random_network(network, enumeration):
    """With generic tables p(a, b | C) = p(a | C) p(b | C) exactly where the graph says so."""
    tables, vector = network(seed=3, count=5)
    names = tables.dag.names
    edges = [*names, *((names[p], names[v]) for v in range(5) for p in tables.dag.parents[v])]
    model, joint = BayesianNetwork(edges), enumeration(tables, vector).joint
    answers = set()
    for a, b in itertools.combinations(range(5), 2):
        others = [v for v in range(5) if v not in (a, b)]
        for size in range(4):
            for given in itertools.combinations(others, size):
                both = joint.sum(tuple(v for v in others if v not in given), keepdims=True)
                product = both.sum(a, keepdims=True) * both.sum(b, keepdims=True)
                independent = np.allclose(both * both.sum((a, b), keepdims=True), product, rtol=1e-9, atol=0)
                answer = model.d_separated(names[a], names[b], [names[v] for v in given])
                assert answer == independent, (names[a], names[b], given)
                answers.add(answer)
    assert answers == {True, False}


def test_a_markov_blanket_separates_its_variable_from_all_others():
    model = BayesianNetwork(EDGES)
    assert sorted(model.markov_blanket("c")) == ["a", "b", "d", "e", "f"]
    assert sorted(model.markov_blanket("a")) == ["b", "c"]
    assert model.d_separated("a", ["d", "e", "f"], given=model.markov_blanket("a"))
    assert not model.d_separated("a", "f", given="e")


def test_the_factorisation_has_a_factor_per_variable():
    text = BayesianNetwork(EDGES).factorisation()
    assert sorted(text.replace(" ", "").split("p(")[1:]) == sorted(["a)", "b)", "f)", "c|a,b)", "d|c)", "e|c,f)"])


def test_a_variable_belongs_to_one_of_the_three_sets():
    model = BayesianNetwork(EDGES)
    with pytest.raises(DataError, match="a and given share 'a'; each variable belongs to one of them"):
        model.d_separated("a", "b", given=["a", "c"])
    with pytest.raises(DataError, match="a and b share 'c'"):
        model.d_separated(["a", "c"], ["c", "b"])
