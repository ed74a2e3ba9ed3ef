import itertools

import networkx as nx
import numpy as np
import pytest

from likely.core.errors import DataError, SpecError
from likely.models.bayesian_network.dag import Dag


@pytest.mark.parametrize("seed", range(10))
def test_order_and_moral_graph_agree_with_networkx(network, seed):
    dag = network(seed, 12)[0].dag
    graph = nx.DiGraph((p, v) for v, parents in enumerate(dag.parents) for p in parents)
    graph.add_nodes_from(range(12))
    place = {variable: rank for rank, variable in enumerate(dag.order)}
    assert all(place[parent] < place[child] for parent, child in graph.edges)
    moral = nx.moral_graph(graph)
    assert [set(moral.neighbors(v)) for v in range(12)] == dag.moral()


def test_markov_blanket_is_the_neighbourhood_in_the_moral_graph(network):
    dag = network(3, 12)[0].dag
    assert [set(dag.markov_blanket(v)) for v in range(12)] == dag.moral()


def test_a_cycle_is_named():
    with pytest.raises(SpecError, match="edges hold a cycle: A → B → C → A; turn or drop one of these edges"):
        Dag.from_edges([("S", "A"), ("A", "B"), ("B", "C"), ("C", "A"), ("C", "T")])
    with pytest.raises(SpecError, match="edges hold a cycle: A → A"):
        Dag.from_edges([("A", "A")])


def test_every_named_cycle_is_one():
    rng = np.random.default_rng(0)
    for _ in range(50):
        edges = {(f"n{a}", f"n{b}") for a, b in rng.integers(0, 9, (14, 2)) if a != b}
        if nx.is_directed_acyclic_graph(nx.DiGraph(edges)):
            continue
        with pytest.raises(SpecError) as caught:
            Dag.from_edges(sorted(edges))
        circle = str(caught.value).split(": ")[1].split(";")[0].split(" → ")
        assert circle[0] == circle[-1]
        assert set(itertools.pairwise(circle)) <= edges


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "edges is empty"),
        ("ab", r"edges must be a list of pairs \(parent, child\)"),
        ([("a", "b", "c")], r"edges\[0\] is \('a', 'b', 'c'\); it must be \(parent, child\)"),
        ([("a", "b"), ("a", 3)], r"edges\[1\] is \('a', 3\)"),
        ([("a", "b"), ("a", "b")], "edges has a → b twice"),
        ([""], r"edges\[0\] is ''"),
    ],
)
def test_bad_edges_are_refused(edges, message):
    with pytest.raises(SpecError, match=message):
        Dag.from_edges(edges)


def test_unknown_names_get_a_hint():
    dag = Dag.from_edges([("smoke", "lung")])
    with pytest.raises(DataError, match=r"There is no variable 'smok'\. Did you mean 'smoke'\?"):
        dag.position("smok")
    with pytest.raises(DataError, match=r"There is no variable 'zzz'\. There are 'smoke', 'lung'\."):
        dag.position("zzz")
