import numpy as np
import pytest

from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.exact import ExactInference
from likely.models.bayesian_network.tables import Tables


def evidences(tables, vector, seed, rows=6):
    """Rows of codes with gaps that have positive probability: parts of drawn rows."""
    rng = np.random.default_rng(seed)
    codes = tables.ancestral(vector, rows, rng)
    codes[rng.random(codes.shape) < 0.6] = -1
    return codes


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("seed", "count"), [(0, 1), (1, 2), (2, 5), (3, 6), (4, 7), (5, 9), (6, 10), (7, 12)])
def test_every_answer_equals_enumeration(network, enumeration, seed, count, zeros):
    tables, vector = network(seed, count, zeros)
    brute, inference = enumeration(tables, vector), ExactInference(tables, vector)
    codes = evidences(tables, vector, seed)
    rng = np.random.default_rng(seed)
    weights = rng.random(sum(tables.sizes)) + 0.01
    for soft in (None, weights):
        marginals, log_z = inference.posteriors(codes, soft)
        np.testing.assert_allclose(inference.log_prob(codes, soft), log_z, rtol=1e-12, atol=1e-12)
        for row in range(len(codes)):
            joint = brute.given(codes[row], soft)
            np.testing.assert_allclose(log_z[row], np.log(joint.sum()), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(marginals[row], brute.marginals(codes[row], soft), rtol=1e-10, atol=1e-14)
            best, states = inference.most_probable(codes[row : row + 1], soft)
            np.testing.assert_allclose(best, np.log(joint.max()), rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(joint[tuple(states)], joint.max(), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_logarithms_give_the_same_answers_as_plain_numbers(network, seed):
    tables, vector = network(seed, 9, zeros=True)
    inference = ExactInference(tables, vector)
    codes = evidences(tables, vector, seed)
    plain = inference.posteriors(codes)
    inference.potentials[:] = 0.0
    for first, second in zip(plain, inference.posteriors(codes), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-13)


def test_impossible_evidence_has_probability_zero(network, enumeration):
    tables = Tables(Dag.from_edges([("a", "b"), ("b", "c")]), [2, 2, 2])
    inference = ExactInference(tables, tables.join([[1.0, 0.0], np.eye(2), [[0.5, 0.5], [0.1, 0.9]]]))
    codes = np.array([[-1, 1, -1], [-1, -1, 1]])
    marginals, log_z = inference.posteriors(codes)
    np.testing.assert_allclose(log_z, [-np.inf, np.log(0.5)])
    np.testing.assert_allclose(marginals[1], [1, 0, 1, 0, 0, 1])
    assert inference.most_probable(codes[:1])[0] == -np.inf


def test_evidence_on_a_chain_of_two_thousand_variables_does_not_underflow():
    """A hidden Markov chain unrolled: log p(evidence) by the scaled forward recursion, 10⁻⁴⁰⁰⁰ and less as a number."""
    rng = np.random.default_rng(0)
    length, states = 2000, 3
    start, move, emit = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.full(20, 0.3), 3)
    edges = [(f"z{t}", f"z{t + 1}") for t in range(length - 1)] + [(f"z{t}", f"x{t}") for t in range(length)]
    dag = Dag.from_edges(edges)
    hidden = np.array([name[0] == "z" for name in dag.names])
    tables = Tables(dag, np.where(hidden, states, 20))
    inference = ExactInference(
        tables, tables.join([emit if not z else move if dag.parents[v] else start for v, z in enumerate(hidden)])
    )
    seen = rng.integers(0, 20, length)
    codes = np.full((1, 2 * length), -1)
    codes[0, [dag.position(f"x{t}") for t in range(length)]] = seen
    alpha, expected, scaled = start, 0.0, []
    for t in range(length):
        alpha = (alpha if t == 0 else alpha @ move) * emit[:, seen[t]]
        expected += np.log(alpha.sum())
        alpha = alpha / alpha.sum()
        scaled.append(alpha)
    assert expected < -4000
    marginals, (log_z,) = inference.posteriors(codes)
    np.testing.assert_allclose(log_z, expected, rtol=1e-11)
    last = inference.plan.state_start[dag.position(f"z{length - 1}")]
    np.testing.assert_allclose(marginals[0, last : last + 3], alpha, rtol=1e-9)


def test_many_contrary_witnesses_do_not_drown_one_another():
    """1,200 children speak for one cause and then 1,200 for the other: the posterior is that of the few left over."""
    count = 1200
    dag = Dag.from_edges([("cause", f"w{place}") for place in range(2 * count + 3)])
    tables = Tables(dag, [2] * (2 * count + 4))
    inference = ExactInference(tables, tables.join([[0.5, 0.5], *[[[0.9, 0.1], [0.1, 0.9]]] * (2 * count + 3)]))
    codes = np.array([[-1, *[0] * count, *[1] * (count + 3)]])
    marginals, (log_z,) = inference.posteriors(codes)
    np.testing.assert_allclose(marginals[0, :2], [1 / (1 + 9**3), 9**3 / (1 + 9**3)], rtol=1e-9)
    np.testing.assert_allclose(log_z, count * np.log(0.09) + np.log(0.5 * (0.1**3 + 0.9**3)), rtol=1e-12)


def test_tables_below_the_range_of_float64_still_count():
    tables = Tables(Dag.from_edges([("a", "b")]), [2, 2])
    inference = ExactInference(tables, tables.join([[1e-200, 1.0], [[1e-200, 1.0], [0.0, 1.0]]]))
    marginals, (log_z,) = inference.posteriors(np.array([[-1, 0]]))
    np.testing.assert_allclose(log_z, -400 * np.log(10), rtol=1e-14)
    np.testing.assert_allclose(marginals[0], [1, 0, 1, 0])


def test_draws_given_evidence_have_the_posterior_of_whole_states(network, enumeration, seed):
    """A χ² test over all joint states: a false alarm in 1 of 10⁶ seeds."""
    from scipy.stats import chi2

    tables, vector = network(seed + 20, 6)
    inference = ExactInference(tables, vector)
    weights = np.random.default_rng(seed).random(sum(tables.sizes)) + 0.1
    codes = np.full((1, 6), -1)
    codes[0, seed % 6] = 1
    expected = enumeration(tables, vector).given(codes[0], weights).reshape(-1)
    expected /= expected.sum()
    rows = 20_000
    log_z, drawn = inference.sample(codes, rows, np.random.default_rng(seed), weights)
    np.testing.assert_allclose(log_z, inference.log_prob(codes, weights)[0])
    counts = np.bincount(np.ravel_multi_index(tuple(drawn.T), tables.sizes), minlength=len(expected))
    assert counts[expected == 0].sum() == 0
    often = expected * rows >= 5
    pooled = np.append(counts[often], counts[~often].sum()), np.append(expected[often], expected[~often].sum()) * rows
    keep = pooled[1] > 0
    statistic = ((pooled[0] - pooled[1])[keep] ** 2 / pooled[1][keep]).sum()
    assert statistic < chi2.isf(1e-6, keep.sum() - 1)


@pytest.mark.parametrize("seed", range(3))
def test_expected_counts_are_posteriors_of_families(network, enumeration, seed):
    tables, vector = network(seed, 6)
    codes, weights = evidences(tables, vector, seed), np.arange(1.0, 7.0)
    counts, _ = ExactInference(tables, vector).expected_counts(codes, weights)
    brute = enumeration(tables, vector)
    expected = []
    for variable in range(6):
        family = tables.dag.family(variable)
        total = np.zeros(tables.shapes[variable])
        for row, weight in zip(codes, weights, strict=True):
            joint = brute.given(row)
            part = joint.sum(tuple(axis for axis in range(6) if axis not in family)) / joint.sum()
            total += weight * part.transpose([sorted(family).index(member) for member in family])
        expected.append(total.reshape(-1))
    np.testing.assert_allclose(counts, np.concatenate(expected), rtol=1e-10, atol=1e-12)
