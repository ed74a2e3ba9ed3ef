"""Markov chains in closed form. Each p-value of right paths is below 1e-4 in one of 10⁴ runs."""

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from likely.core.errors import DataError
from likely.sampling import MarkovChain

CYCLE = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
RUIN = [  # a gambler with 0 … 4 coins: 0 and 4 end the game
    [1, 0, 0, 0, 0],
    [0.5, 0, 0.5, 0, 0],
    [0, 0.5, 0, 0.5, 0],
    [0, 0, 0.5, 0, 0.5],
    [0, 0, 0, 0, 1],
]


@st.composite
def matrices(draw):
    """Stochastic matrices with many zeros."""
    size = draw(st.integers(1, 7))
    row = st.lists(st.sampled_from([0, 0, 0, 1, 2, 5]), min_size=size, max_size=size).filter(any)
    counts = np.array([draw(row) for _ in range(size)], dtype=float)
    return counts / counts.sum(1, keepdims=True)


def graph_of(matrix):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(matrix)))
    graph.add_edges_from(zip(*np.nonzero(matrix), strict=True))
    return graph


@given(matrices())
def test_classes_periods_and_recurrence_follow_the_graph(matrix):
    chain, graph = MarkovChain(matrix), graph_of(matrix)
    parts = [tuple(sorted(int(i) for i in part)) for part in nx.strongly_connected_components(graph)]
    assert chain.classes() == sorted(parts)
    closed = [int(i) for part in nx.attracting_components(graph) for i in part]
    assert chain.recurrent == sorted(closed)
    assert sorted(chain.recurrent + chain.transient) == list(range(len(matrix)))
    assert chain.is_irreducible == nx.is_strongly_connected(graph)
    for state in range(len(matrix)):
        returns, power = [], np.eye(len(matrix), dtype=int)
        for step in range(1, 4 * len(matrix) ** 2):
            power = np.minimum(power @ (matrix > 0), 1)
            returns += [step] * int(power[state, state])
        assert chain.period(state) == (math.gcd(*returns) if returns else 0)


@given(matrices())
def test_each_recurrent_class_has_its_stationary_distribution(matrix):
    chain = MarkovChain(matrix)
    for state in chain.recurrent:
        pi = chain.stationary(within=state)
        np.testing.assert_allclose(pi @ chain.transition, pi, atol=1e-14)
        assert pi.sum() == pytest.approx(1.0, abs=1e-14)
        assert (pi > 0).nonzero()[0].tolist() == list(chain._class_of(state))


@given(matrices())
def test_hitting_times_solve_their_equation_and_are_those_of_paths(matrix):
    """h = 0 on the target; else h = 1 + P h. Infinite exactly where some path gets lost."""
    chain, target = MarkovChain(matrix), 0
    times = chain.hitting_times(target)
    held = matrix.copy()
    held[target] = np.eye(len(matrix))[target]
    arrived = np.linalg.matrix_power(held, 4096)[:, target]
    for state, time in enumerate(times):
        if np.isinf(time):
            assert arrived[state] < 1 - 1e-6
        else:
            assert arrived[state] > 1 - 1e-9
            if state != target:
                reached = matrix[state] > 0
                assert time == pytest.approx(1 + matrix[state, reached] @ times[reached], rel=1e-9)
    assert times[target] == 0


@given(matrices())
def test_the_mixing_time_is_the_first_at_which_all_starts_are_close(matrix):
    chain = MarkovChain(matrix)
    time = chain.mixing_time(0.1)
    if len(chain.recurrent) and len({tuple(chain._class_of(s)) for s in chain.recurrent}) > 1:
        assert time == math.inf
        return
    distances = [chain.total_variation(t) for t in range(60)]
    first = next((t for t, distance in enumerate(distances) if distance <= 0.1), None)
    if first is not None:
        assert time == first
    else:
        assert time >= 60
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(distances))


def test_a_cycle_is_periodic_and_never_mixes():
    chain = MarkovChain(CYCLE)
    assert chain.is_irreducible
    assert not chain.is_aperiodic
    assert [chain.period(state) for state in range(3)] == [3, 3, 3]
    np.testing.assert_allclose(chain.stationary(), 1 / 3)
    assert not chain.is_reversible()
    assert chain.mixing_time() == math.inf
    assert chain.spectral_gap == pytest.approx(0.0, abs=1e-12)


def test_the_gamblers_ruin():
    """Two absorbing ends: two recurrent classes, three transient states, k(4 − k) steps to the end of the game."""
    chain = MarkovChain(RUIN)
    assert chain.classes() == [(0,), (1, 2, 3), (4,)]
    assert (chain.recurrent, chain.transient) == ([0, 4], [1, 2, 3])
    np.testing.assert_allclose(chain.hitting_times([0, 4]), [0, 3, 4, 3, 0], rtol=1e-12)
    assert chain.hitting_times(0).tolist() == [0, math.inf, math.inf, math.inf, math.inf]
    np.testing.assert_allclose(chain.after(2000, 1), [0.75, 0, 0, 0, 0.25], atol=1e-12)
    assert chain.spectral_gap == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(DataError, match=r"2 recurrent classes \(\{0\}, \{4\}\).*stationary\(within=4\)"):
        chain.stationary()
    with pytest.raises(DataError, match="State 2 is transient"):
        chain.stationary(within=2)
    assert chain.stationary(within=4).tolist() == [0, 0, 0, 0, 1]


def test_a_random_walk_on_a_graph_is_reversible_and_visits_by_degree():
    graph = nx.karate_club_graph()
    adjacency = nx.to_numpy_array(graph, weight=None)
    degree = adjacency.sum(1)
    chain = MarkovChain(adjacency / degree[:, None])
    np.testing.assert_allclose(chain.stationary(), degree / degree.sum(), rtol=1e-13)
    assert chain.is_reversible()
    assert chain.is_aperiodic  # it has triangles
    bipartite = nx.to_numpy_array(nx.complete_bipartite_graph(2, 3))
    assert MarkovChain(bipartite / bipartite.sum(1, keepdims=True)).period(0) == 2


def test_the_stationary_distribution_is_exact_where_eigenvectors_are_not():
    """A birth-death chain whose πₖ = 2^(−50k) spans 1e-135: each entry has full relative precision."""
    up, size = 2.0**-50, 10
    matrix = np.diag(np.full(size - 1, up), 1) + np.diag(np.full(size - 1, 1.0 - up), -1)
    matrix += np.diag(1 - matrix.sum(1))
    pi = MarkovChain(matrix).stationary()
    ratio = Fraction(up) / Fraction(1.0 - up)
    first = Fraction(up) / Fraction(matrix[1, 0])
    assert first == ratio
    weights = [ratio**k for k in range(size)]
    expected = [float(w / sum(weights)) for w in weights]
    np.testing.assert_allclose(pi, expected, rtol=1e-13)


def test_return_times_are_one_over_the_stationary_probability():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(6), size=6)
    chain = MarkovChain(matrix)
    for state in range(6):
        assert 1 + matrix[state] @ chain.hitting_times(state) == pytest.approx(1 / chain.stationary()[state])


def test_two_states_have_closed_forms():
    """λ₂ = 1 − a − b, π = (b, a)/(a + b), and the start is forgotten as |λ₂|ᵗ."""
    a, b = 0.3, 0.1
    chain = MarkovChain([[1 - a, a], [b, 1 - b]])
    np.testing.assert_allclose(chain.stationary(), [b / (a + b), a / (a + b)])
    assert chain.spectral_gap == pytest.approx(a + b)
    for steps in (0, 1, 5):
        assert chain.total_variation(steps, start=0) == pytest.approx(a / (a + b) * (1 - a - b) ** steps)
        assert chain.total_variation(steps) == pytest.approx(max(a, b) / (a + b) * (1 - a - b) ** steps)
    assert chain.total_variation(3, start=[b / (a + b), a / (a + b)]) == pytest.approx(0.0, abs=1e-15)


def test_paths_follow_the_transitions(seed):
    rng = np.random.default_rng(seed + 1)
    matrix = rng.dirichlet(np.ones(4), size=4)
    chain = MarkovChain(matrix)
    path = chain.sample(40_000, start=2, random_state=seed)
    assert path.shape == (40_001,)
    assert path[0] == 2
    for state in range(4):
        after = path[1:][path[:-1] == state]
        assert chisquare(np.bincount(after, minlength=4), matrix[state] * len(after)).pvalue > 1e-4


def test_many_paths_start_and_stay_in_the_stationary_distribution(seed):
    chain = MarkovChain([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.4, 0.6]])
    paths = chain.sample(20, random_state=seed, chains=20_000)
    assert paths.shape == (20_000, 21)
    for time in (0, 20):
        seen = np.bincount(paths[:, time], minlength=3)
        assert chisquare(seen, chain.stationary() * 20_000).pvalue > 1e-4
    np.testing.assert_array_equal(paths, chain.sample(20, random_state=seed, chains=20_000))


def test_impossible_steps_are_never_taken():
    path = MarkovChain(RUIN).sample(500, start=[0, 0.5, 0, 0.5, 0], random_state=0, chains=200)
    assert set(np.unique(path[:, 0])) == {1, 3}
    assert (np.array(RUIN)[path[:, :-1], path[:, 1:]] > 0).all()
    assert set(np.unique(path[:, -1])) == {0, 4}


def test_a_chain_of_one_state_stays():
    chain = MarkovChain([[1.0]])
    assert chain.mixing_time() == 0
    assert chain.spectral_gap == 1.0
    assert chain.period(0) == 1


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5]], r"transition must be a square matrix \(n, n\); found shape \(1, 2\)"),
        ([[0.5, 0.5], [0.5, 0.4]], "transition: row 1 sums to 0.9; each row is a distribution and sums to 1"),
        ([[1.0, 0.0], [0.0, 0.0]], "transition: row 1 is all zero, so state 1 leads nowhere; an absorbing state"),
        ([[1.5, -0.5], [0.0, 1.0]], "transition has the value -0.5 at row 0, column 1"),
        ([[np.nan, 1.0], [0.0, 1.0]], "transition has the value nan at row 0, column 0"),
    ],
)
def test_matrices_that_are_not_stochastic_are_refused(matrix, message):
    with pytest.raises(DataError, match=message):
        MarkovChain(matrix)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.period(3), "state must be an integer from 0 to 2; found 3"),
        (lambda c: c.sample(-1), "n_steps must be 0 or more and chains 1 or more; found -1 and None"),
        (lambda c: c.sample(5, start=[0.5, 0.2, 0.2]), "start must be a state or 3 probabilities that sum to 1"),
        (lambda c: c.mixing_time(0.0), "epsilon must lie between 0 and 1; found 0.0"),
    ],
)
def test_questions_without_an_answer_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call(MarkovChain(CYCLE))
