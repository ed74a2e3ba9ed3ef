"""A clique tree as flat arrays: each index leads to the entry that numpy's axes lead to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.models.bayesian_network import schedule as module
from likely.models.bayesian_network.clique_tree import clique_tree
from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.schedule import schedule


@pytest.fixture
def planned(network):
    tables, _ = network(seed=1, count=6)
    tree = clique_tree(tables.dag, tables.sizes)
    return tables, tree, schedule(tables.dag, tables.sizes, tree)


def states_of(clique, sizes):
    """The states of a clique's variables, entry by entry."""
    return itertools.product(*(range(sizes[variable]) for variable in clique))


def test_lift_leads_to_the_row_of_the_separator(planned):
    tables, tree, plan = planned
    assert len(tree.cliques) > 1
    for clique in range(1, len(tree.cliques)):
        above, separator = tree.cliques[tree.parent[clique]], tree.separator(clique)
        shape = tuple(tables.sizes[variable] for variable in separator)
        rows = plan.lift[plan.lift_start[clique] : plan.lift_start[clique + 1]]
        expected = [
            np.ravel_multi_index([states[above.index(variable)] for variable in separator], shape) if shape else 0
            for states in states_of(above, tables.sizes)
        ]
        assert rows.tolist() == [int(row) for row in expected]
        assert plan.rows[clique] == np.prod(shape, dtype=int)


def test_strides_tell_the_state_of_a_variable(planned):
    tables, tree, plan = planned
    for variable, size in enumerate(tables.sizes):
        clique = tree.cliques[plan.home[variable]]
        expected = [states[clique.index(variable)] for states in states_of(clique, tables.sizes)]
        entries = np.arange(plan.start[plan.home[variable] + 1] - plan.start[plan.home[variable]])
        assert (entries // plan.stride[variable] % size).tolist() == expected


def test_family_leads_to_the_entry_of_the_conditional_table(planned):
    tables, tree, plan = planned
    numbered = tables.split(np.arange(tables.start[-1]))
    for variable in range(len(tables.sizes)):
        clique, family = tree.cliques[plan.family_home[variable]], tables.dag.family(variable)
        expected = [
            int(numbered[variable][tuple(states[clique.index(member)] for member in family)])
            for states in states_of(clique, tables.sizes)
        ]
        assert plan.family[plan.family_start[variable] : plan.family_start[variable + 1]].tolist() == expected
    assert plan.table_start.tolist() == tables.start.tolist()


def test_a_tree_too_large_is_refused_with_its_largest_clique(monkeypatch):
    dag = Dag.from_edges([("a", "c"), ("b", "c"), ("c", "d")])
    monkeypatch.setattr(module, "LIMIT", 60)
    with pytest.raises(DataError, match=r"clique tables of 72 entries; the largest clique joins 3 variables"):
        schedule(dag, [4, 4, 4, 2], clique_tree(dag, [4, 4, 4, 2]))
