from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

import likely
from likely import Hopfield
from likely.core.errors import DataError, LikelyWarning, SpecError


def random_patterns(count, units, seed=0):
    return np.random.default_rng(seed).choice([-1, 1], size=(count, units))


def damaged(patterns, share, seed=1):
    wrong = np.random.default_rng(seed).random(patterns.shape) < share
    return np.where(wrong, -patterns, patterns)


@pytest.mark.parametrize("rule", ["hebb", "pseudoinverse"])
def test_weights_are_symmetric_with_zero_diagonal(rule):
    weights = Hopfield(rule).fit(random_patterns(7, 30)).weights_
    np.testing.assert_array_equal(weights, weights.T)
    np.testing.assert_array_equal(np.diag(weights), 0)


def test_hebbian_weights_are_the_mean_products_of_units():
    patterns = random_patterns(3, 5)
    expected = sum(np.outer(p, p) for p in patterns) / 5
    np.testing.assert_allclose(Hopfield().fit(patterns).weights_, expected - np.diag(np.diag(expected)))


@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(2, 24), st.sampled_from(["hebb", "pseudoinverse"]))
def test_energy_never_rises_unit_by_unit_and_recall_ends_at_rest(seed, count, units, rule):
    net = Hopfield(rule).fit(random_patterns(count, units, seed))
    state, rest = random_patterns(4, units, seed + 1), None
    before = net.energy(state)
    for step in range(100):
        after = net.recall(state, steps=1, random_state=step)
        energy = net.energy(after)
        assert (energy <= before + 1e-9).all()
        rest = np.array_equal(after, state)
        state, before = after, energy
        if rest:
            break
    assert rest
    np.testing.assert_array_equal(net.recall(state, random_state=0), state)
    assert (state * (state @ net.weights_) >= -1e-9 * units).all()  # no unit is against its input


@given(st.integers(0, 2**31), st.integers(1, 8), st.integers(2, 16))
def test_the_end_of_recall_is_that_of_a_plain_loop(seed, count, units):
    """One unit after another, in the same random order, with the input computed anew each time."""
    net, state = Hopfield().fit(random_patterns(count, units, seed)), random_patterns(1, units, seed + 7)
    recalled = net.recall(state, random_state=3)[0]
    x, random = state[0].astype(float), np.random.default_rng(likely.core.random.seed_of(3))
    while True:
        before = x.copy()
        for unit in random.permutation(units):
            field = net.weights_[unit] @ x
            if abs(field) > 1e-9:
                x[unit] = np.sign(field)
        if np.array_equal(before, x):
            break
    np.testing.assert_array_equal(recalled, x)


def test_energy_is_the_sum_over_pairs():
    net, states = Hopfield().fit(random_patterns(3, 6)), random_patterns(4, 6, 1)
    pairs = [-sum(net.weights_[i, j] * x[i] * x[j] for i in range(6) for j in range(i)) for x in states]
    np.testing.assert_allclose(net.energy(states), pairs)


@pytest.mark.parametrize("order", ["asynchronous", "synchronous"])
def test_orthogonal_patterns_and_their_mirror_images_are_at_rest(order):
    """For m orthogonal patterns Wp = (1 − m/n) p, so that p is at rest for any m < n."""
    patterns = hadamard(32)[1:20]
    net = Hopfield().fit(patterns)
    np.testing.assert_allclose(patterns @ net.weights_, (1 - 19 / 32) * patterns)
    for state in (patterns, -patterns):
        np.testing.assert_array_equal(net.recall(state, order=order, random_state=0), state)


def test_mixtures_of_three_patterns_are_at_rest_too():
    """sign(p₁ + p₂ + p₃) overlaps each by about ½, so that its inputs are near ½(±1 ±1 ±1), with its own sign."""
    patterns = random_patterns(3, 2000)
    mixture = np.sign(patterns.sum(0, keepdims=True))
    net = Hopfield().fit(patterns)
    np.testing.assert_array_equal(net.recall(mixture, random_state=0), mixture)
    assert net.energy(mixture)[0] > net.energy(patterns).max()  # but in a shallower valley


def test_recall_holds_below_capacity_and_breaks_down_above(seed):
    """Amit, Gutfreund and Sompolinsky: up to 0.138 n patterns come back with few wrong units (1.6 % at the edge).

    At 0.10 n theory says an overlap of 0.997, at 0.20 n it is about 0.35; over seeds these move by less than 0.05.
    """
    units, overlap = 1000, {}
    for load in (0.10, 0.20):
        patterns = random_patterns(round(load * units), units, 2 * seed)
        net = Hopfield().fit(patterns)
        assert net.load_ == load
        few = damaged(patterns, 0.05, 2 * seed + 1)[:40]
        overlap[load] = (net.recall(few, random_state=seed) * patterns[:40]).mean()
    assert overlap[0.10] > 0.97
    assert overlap[0.20] < 0.6


def test_the_pseudoinverse_keeps_correlated_patterns_that_hebb_loses():
    common = random_patterns(1, 100)
    patterns = np.vstack([damaged(common, 0.15, seed) for seed in range(12)])
    kept = Hopfield("pseudoinverse").fit(patterns).recall(patterns, random_state=0)
    lost = Hopfield("hebb").fit(patterns).recall(patterns, random_state=0)
    np.testing.assert_array_equal(kept, patterns)
    assert (lost != patterns).any(1).all()


def test_synchronous_updates_may_turn_between_two_states_and_say_so():
    net = Hopfield().fit([[1, 1]])
    with pytest.warns(LikelyWarning, match=r"1 of 2 rows oscillate between two states.*asynchronous"):
        net.recall([[1, -1], [1, 1]], order="synchronous")
    np.testing.assert_array_equal(net.recall([[1, -1]], steps=1, order="synchronous"), [[-1, 1]])
    np.testing.assert_array_equal(net.recall([[1, -1]], steps=2, order="synchronous"), [[1, -1]])


def test_booleans_are_signs_and_each_row_is_recalled_by_itself():
    patterns = random_patterns(4, 40)
    net, same = Hopfield(random_state=5).fit(patterns), Hopfield(random_state=5).fit(patterns > 0)
    np.testing.assert_array_equal(net.weights_, same.weights_)
    states = damaged(patterns, 0.2)
    np.testing.assert_array_equal(net.predict(states), same.predict(states > 0))
    np.testing.assert_array_equal(net.predict(states)[1:2], net.predict(states[1:2]))
    assert np.issubdtype(net.predict(states).dtype, np.int64)


def test_a_saved_net_is_the_same(tmp_path):
    patterns = random_patterns(3, 20)
    net = Hopfield("pseudoinverse", random_state=0).fit(patterns)
    net.save(tmp_path / "net.likely")
    again = likely.load(tmp_path / "net.likely")
    np.testing.assert_array_equal(again.weights_, net.weights_)
    np.testing.assert_array_equal(again.predict(-patterns), net.predict(-patterns))
    assert (again.n_patterns_, again.load_) == (3, 0.15)


def test_input_is_left_as_it_was():
    patterns = random_patterns(3, 20).astype(float)
    states, net = damaged(patterns, 0.3), Hopfield().fit(patterns)
    copy = states.copy()
    net.recall(states, random_state=0)
    np.testing.assert_array_equal(states, copy)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, -1.0], [0.5, 1.0]], "X has 0.5 at row 1, column 0; Hopfield needs −1 and \\+1.$"),
        ([[1, 0], [0, 1]], r"X has 0 at row 0, column 1; .* For 0 and 1, give 2 \* X - 1 or booleans"),
        ([[1.0, np.nan]], "X contains NaN at row 0, column 1"),
        (np.ones((2, 2, 2)), r"X has shape \(2, 2, 2\); Hopfield needs one pattern for each row"),
    ],
)
def test_other_values_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        Hopfield().fit(X)


def test_other_widths_rules_orders_and_steps_are_refused():
    net = Hopfield().fit([[1, -1, 1]])
    with pytest.raises(DataError, match="X has 2 features, but Hopfield is expecting 3 features"):
        net.recall([[1, -1]])
    with pytest.raises(SpecError, match=r'rule must be "hebb" or "pseudoinverse"'):
        Hopfield("oja").fit([[1, -1]])
    with pytest.raises(SpecError, match=r"order='random' is not known; use \"asynchronous\" or \"synchronous\""):
        net.recall([[1, -1, 1]], order="random")
    for steps in (0, 1.5, True):
        with pytest.raises(SpecError, match=r"steps=.* must be a positive integer, or None"):
            net.recall([[1, -1, 1]], steps=steps)
