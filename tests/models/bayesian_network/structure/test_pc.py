"""PC: with the probabilities themselves in place of rows, the graph up to what no independence can tell."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.bayesian_network.structure.drawn import NAMES, draw, parents_of

from likely.models.bayesian_network import PC, Dag
from likely.models.bayesian_network.structure.equivalence import equivalence_class
from likely.models.bayesian_network.structure.sample import Sample


def exactly(network, enumeration, seed, rows):
    """Every state of five variables, with its probability as the weight, and the true graph."""
    tables, vector = network(seed, 5)
    joint = enumeration(tables, vector).joint
    codes = np.argwhere(np.ones(tables.sizes))
    return Sample.of(NAMES, codes, rows * joint.ravel(), tables.sizes), tables.dag


@pytest.mark.parametrize("seed_of_network", range(6))
def test_probabilities_tell_the_equivalence_class(network, enumeration, seed_of_network):
    sample, dag = exactly(network, enumeration, seed_of_network, 1e9)
    edges = PC(alpha=1e-6).learn(sample, np.random.default_rng(0))
    learned = Dag.from_edges([*NAMES, *((NAMES[parent], NAMES[child]) for parent, child in edges)])
    np.testing.assert_array_equal(equivalence_class(learned.parents), equivalence_class(dag.parents))


def test_a_balanced_design_has_no_edges():
    """Every combination of five factors once, in any proportion of the levels: G² is 0, up to rounding."""
    sizes = [2, 3, 2, 3, 2]
    levels = [np.linspace(1.0, 2.7, size) / 3.1 for size in sizes]
    weight = 1e4 * np.einsum("a,b,c,d,e->abcde", *levels)
    sample = Sample.of(NAMES, np.argwhere(np.ones(sizes)), weight.ravel(), sizes)
    assert PC().learn(sample, np.random.default_rng(0)) == []


def test_too_few_rows_part_nothing_and_no_conditions_part_less(network, enumeration):
    """A pair that cannot be tested stays joined; with no variable given, only what is independent at all is apart.

    Of six drawn graphs one at least has a pair that is apart only if something is given.
    """
    few, _ = exactly(network, enumeration, 0, 5)
    assert len(PC().learn(few, np.random.default_rng(0))) == 10
    samples = [exactly(network, enumeration, seed, 1e9)[0] for seed in range(6)]
    some, all_ = (
        np.array([len(PC(max_given=most).learn(sample, np.random.default_rng(0))) for sample in samples])
        for most in (0, None)
    )
    assert (some >= all_).all()
    assert some.sum() > all_.sum()


def test_the_order_of_the_columns_does_not_matter_for_what_is_joined(network):
    sample = draw(network, 4)
    turned = Sample.of(NAMES[::-1], sample.codes.T[:, ::-1], sample.weights, sample.sizes[::-1])
    joined = {frozenset(NAMES[v] for v in edge) for edge in PC().learn(sample, np.random.default_rng(0))}
    again = {frozenset(NAMES[::-1][v] for v in edge) for edge in PC().learn(turned, np.random.default_rng(0))}
    assert joined == again
    assert all(len(own) < 5 for own in parents_of(PC().learn(sample, np.random.default_rng(0))))
