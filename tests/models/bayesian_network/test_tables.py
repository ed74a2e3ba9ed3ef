import numpy as np
import pytest
from scipy.stats import chi2

from likely.core.errors import DataError, LikelyWarning
from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.tables import Tables

RAIN = Dag.from_edges([("rain", "wet"), ("sprinkler", "wet")])


def test_log_prob_is_that_of_the_joint(network, enumeration):
    tables, vector = network(1, 6, zeros=True)
    joint = enumeration(tables, vector).joint
    states = np.argwhere(np.ones_like(joint))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(tables.log_prob(vector, states), np.log(joint.reshape(-1)), rtol=1e-12)
    np.testing.assert_allclose(joint.sum(), 1, rtol=1e-12)


def test_ancestral_draws_have_the_joint_distribution(network, enumeration, seed):
    """A χ² test over all joint states: a false alarm in 1 of 10⁶ seeds."""
    tables, vector = network(seed + 40, 5)
    expected = enumeration(tables, vector).joint.reshape(-1)
    rows = 20_000
    drawn = tables.ancestral(vector, rows, np.random.default_rng(seed))
    counts = np.bincount(np.ravel_multi_index(tuple(drawn.T), tables.sizes), minlength=len(expected))
    often = expected * rows >= 5
    counts = np.append(counts[often], counts[~often].sum())
    expected = np.append(expected[often], expected[~often].sum()) * rows
    assert ((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum() < chi2.isf(1e-6, len(expected) - 1)


def test_states_of_probability_zero_are_never_drawn():
    tables = Tables(Dag.from_edges(["a"]), [4])
    drawn = tables.ancestral(tables.join([[0.0, 0.5, 0.0, 0.5]]), 10_000, np.random.default_rng(0))
    assert set(drawn[:, 0]) == {1, 3}


@pytest.mark.parametrize(
    ("wet", "message"),
    [
        (
            [[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.6], [1, 0]]],
            r"p\(wet \| rain=1, sprinkler=0\) sums to 0\.9 \(0\.3, 0\.6\)",
        ),
        (
            [[[0.9, 0.1], [1.5, -0.5]], [[0.3, 0.7], [1, 0]]],
            r"rain=0, sprinkler=1\) has numbers that are not probabilities",
        ),
        (
            [[0.9, 0.1], [0.5, 0.5]],
            r"The table of 'wet' has shape \(2, 2\); over \(rain, sprinkler, wet\) it must be \(2",
        ),
        ([["a", "b"]], "The table of 'wet' is not an array of numbers"),
    ],
)
def test_a_table_that_is_none_is_refused_with_its_row(wet, message):
    with pytest.raises(DataError, match=message):
        Tables(RAIN, [2, 2, 2]).join([[0.5, 0.5], wet, [0.5, 0.5]])


def test_rounded_rows_are_scaled_to_one():
    table = Tables(Dag.from_edges(["a"]), [3]).join([[0.333, 0.333, 0.333]])
    np.testing.assert_allclose(table, 1 / 3, rtol=1e-15)


def test_rows_without_counts_are_uniform_and_said_to_be():
    tables = Tables(RAIN, [2, 2, 2])
    counts = tables.counts(np.array([[0, 1, 0], [1, 1, 0]]), np.ones(2))
    assert tables.split(tables.normalise(counts))[1].tolist() == [[[0, 1], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]]
    states = [["dry", "rain"], ["no", "yes"], ["off", "on"]]
    with pytest.warns(LikelyWarning, match=r"2 rows of the tables were never seen.*p\(wet \| rain=dry, sprinkler=on\)"):
        tables.warn_of_unseen(counts, states)


def test_bdeu_spreads_the_same_number_of_rows_over_every_table():
    tables = Tables(RAIN, [2, 3, 4])
    for table in tables.split(tables.pseudo_counts(0.0, rows=12.0)):
        np.testing.assert_allclose(table, 12 / table.size)
