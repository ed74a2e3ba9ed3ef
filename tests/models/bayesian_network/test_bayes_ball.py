import itertools

import networkx as nx
import numpy as np
import pytest

from likely.models.bayesian_network.bayes_ball import d_separated


@pytest.mark.parametrize("seed", range(20))
def test_separation_agrees_with_networkx(network, seed):
    dag = network(seed, 10)[0].dag
    graph = nx.DiGraph((p, v) for v, parents in enumerate(dag.parents) for p in parents)
    graph.add_nodes_from(range(10))
    rng = np.random.default_rng(seed)
    for _ in range(60):
        a, b, *given = rng.permutation(10)[: rng.integers(2, 8)].tolist()
        assert d_separated(dag, [a], [b], given) == nx.is_d_separator(graph, {a}, {b}, set(given))
    groups = rng.permutation(10).tolist()
    first, second, given = groups[:2], groups[2:4], groups[4:6]
    assert d_separated(dag, first, second, given) == nx.is_d_separator(graph, set(first), set(second), set(given))


@pytest.mark.parametrize("seed", range(6))
def test_separated_variables_are_independent_and_others_are_not(network, enumeration, seed):
    """With random tables, dependence where the ball passes holds with probability 1."""
    tables, vector = network(seed, 6)
    joint = enumeration(tables, vector).joint
    for a, b in itertools.combinations(range(6), 2):
        for given in itertools.chain.from_iterable(
            itertools.combinations([v for v in range(6) if v not in (a, b)], size) for size in (0, 1, 2)
        ):
            rest = tuple(v for v in range(6) if v not in (a, b, *given))
            table = joint.sum(rest, keepdims=True)
            left, right = table.sum(b, keepdims=True), table.sum(a, keepdims=True)
            apart = np.abs(table * table.sum((a, b), keepdims=True) - left * right).max()
            if d_separated(tables.dag, [a], [b], given):
                assert apart < 1e-15
            else:
                assert apart > 1e-9
