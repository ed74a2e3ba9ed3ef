import itertools

import networkx as nx
import numpy as np
import pytest

from likely.core.errors import DataError
from likely.models.bayesian_network.clique_tree import clique_tree, eliminate
from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.schedule import schedule


@pytest.mark.parametrize("seed", range(15))
def test_cliques_are_maximal_in_a_chordal_graph_of_all_families(network, seed):
    tables, _ = network(seed, 12)
    tree = clique_tree(tables.dag, tables.sizes)
    chordal = nx.Graph()
    chordal.add_nodes_from(range(12))
    for clique in tree.cliques:
        chordal.add_edges_from(itertools.combinations(clique, 2))
    assert nx.is_chordal(chordal)
    assert {frozenset(clique) for clique in tree.cliques} == {frozenset(c) for c in nx.find_cliques(chordal)}
    for variable in range(12):
        assert any(set(tables.dag.family(variable)) <= set(clique) for clique in tree.cliques)


@pytest.mark.parametrize("seed", range(15))
def test_running_intersection_and_greatest_separators(network, seed):
    """The cliques of each variable hang together, and the tree is a spanning tree of the greatest total weight."""
    tables, _ = network(seed, 12)
    tree = clique_tree(tables.dag, tables.sizes)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(tree.cliques)))
    for clique in range(1, len(tree.cliques)):
        parent = tree.parent[clique]
        assert parent < clique
        assert set(tree.separator(clique)) == set(tree.cliques[clique]) & set(tree.cliques[parent])
        graph.add_edge(clique, parent)
    assert nx.is_tree(graph)
    for variable in range(12):
        holders = [c for c, clique in enumerate(tree.cliques) if variable in clique]
        assert nx.is_connected(graph.subgraph(holders))
    weights = nx.Graph()
    weights.add_nodes_from(range(len(tree.cliques)))
    for a, b in itertools.combinations(range(len(tree.cliques)), 2):
        weights.add_edge(a, b, weight=len(set(tree.cliques[a]) & set(tree.cliques[b])))
    assert nx.maximum_spanning_tree(weights).size("weight") == sum(tree.shared)


def test_elimination_always_takes_the_fewest_fill_edges(network):
    """The order kept by updates is one that a search over all variables at each step would take."""
    for seed in range(10):
        neighbours = network(seed, 12)[0].dag.moral()
        order, later = eliminate(neighbours, [2] * 12)
        graph = nx.Graph((a, b) for a, around in enumerate(neighbours) for b in around)
        graph.add_nodes_from(range(12))

        def fill(variable, graph=graph):
            pairs = itertools.combinations(graph.neighbors(variable), 2)
            return sum(not graph.has_edge(a, b) for a, b in pairs)

        for variable in order:
            assert fill(variable) == min(fill(candidate) for candidate in graph)
            assert later[variable] == set(graph.neighbors(variable))
            graph.add_edges_from(itertools.combinations(list(graph.neighbors(variable)), 2))
            graph.remove_node(variable)


def test_a_tree_that_is_too_large_is_refused_with_its_clique():
    names = [f"cause{place}" for place in range(40)]
    dag = Dag.from_edges([(name, "effect") for name in names])
    with pytest.raises(
        DataError, match=r"Exact inference needs clique tables of 2\.2e\+12 entries; the largest clique"
    ):
        schedule(dag, [2] * 41, clique_tree(dag, [2] * 41))


def test_places_follow_the_axes_of_the_cliques(network):
    tables, vector = network(5, 8)
    tree = clique_tree(tables.dag, tables.sizes)
    plan = schedule(tables.dag, tables.sizes, tree)
    for variable in range(8):
        clique = tree.cliques[plan.family_home[variable]]
        spread = vector[plan.family[plan.family_start[variable] : plan.family_start[variable + 1]]]
        table = tables.split(vector)[variable]
        for entry, states in enumerate(np.ndindex(*(tables.sizes[member] for member in clique))):
            at = dict(zip(clique, states, strict=True))
            assert spread[entry] == table[tuple(at[member] for member in tables.dag.family(variable))]
