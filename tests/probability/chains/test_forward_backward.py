"""Forward-backward against the sum over all paths, however small the numbers and long the sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from likely.probability.chains import filter_states, forward_backward
from likely.probability.chains.forward_backward import Memory


def enumerated(initial, transition, log_emission):
    """log p(x), γ, Σξ and filtered probabilities from all paths, with logarithms."""
    steps, states = log_emission.shape
    with np.errstate(divide="ignore"):
        log_initial, log_transition = np.log(initial), np.log(transition)
    paths = np.array(list(itertools.product(range(states), repeat=steps)))

    def joint(length):
        own = np.array(list(itertools.product(range(states), repeat=length)))
        value = log_initial[own[:, 0]] + log_emission[np.arange(length), own].sum(1)
        return own, value + log_transition[own[:, :-1], own[:, 1:]].sum(1)

    _, value = joint(steps)
    total = logsumexp(value)
    weight = np.exp(value - total)
    posterior = np.stack([[weight[paths[:, t] == k].sum() for k in range(states)] for t in range(steps)])
    pairs = np.zeros((states, states))
    for t in range(1, steps):
        np.add.at(pairs, (paths[:, t - 1], paths[:, t]), weight)
    filtered = []
    for t in range(steps):
        own, value = joint(t + 1)
        share = np.exp(value - logsumexp(value))
        filtered.append([share[own[:, -1] == k].sum() for k in range(states)])
    return total, posterior, pairs, np.array(filtered)


def chain(seed, states, steps, spread=2.0):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), states)
    return rng.dirichlet(np.ones(states)), transition, spread * rng.normal(size=(steps, states))


def compare(initial, transition, log_emission, tolerance=1e-11):
    total, posterior, pairs, filtered = enumerated(initial, transition, log_emission)
    offsets = np.array([0, len(log_emission)])
    smoothed = forward_backward(initial, transition, log_emission, offsets)
    assert smoothed.log_prob[0] == pytest.approx(total, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(smoothed.posterior, posterior, rtol=0, atol=tolerance)
    np.testing.assert_allclose(smoothed.pairs, pairs, rtol=0, atol=tolerance)
    np.testing.assert_allclose(smoothed.first, posterior[0], rtol=0, atol=tolerance)
    log_prob, share, impossible = filter_states(initial, transition, log_emission, offsets)
    assert log_prob[0] == pytest.approx(total, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(share, filtered, rtol=0, atol=tolerance)
    assert impossible.tolist() == [-1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("states", "steps"), [(3, 6), (1, 4), (2, 1), (4, 5), (5, 4)])
def test_it_is_the_sum_over_all_paths(seed, states, steps):
    compare(*chain(seed, states, steps))


@pytest.mark.parametrize("seed", range(5))
def test_structural_zeros_are_kept(seed):
    _, transition, log_emission = chain(seed, 3, 6)
    transition = np.triu(transition)
    transition /= transition.sum(1, keepdims=True)
    compare(np.array([1.0, 0.0, 0.0]), transition, log_emission)


@pytest.mark.parametrize("seed", range(5))
def test_emissions_of_any_size_lose_nothing(seed):
    """Ratios of e^±2000 between states: no product of probabilities can be written, and the answer is still exact."""
    initial, transition, log_emission = chain(seed, 3, 6, spread=1000.0)
    compare(initial, transition, log_emission)
    ordered = np.triu(transition) / np.triu(transition).sum(1, keepdims=True)
    compare(np.array([1.0, 0.0, 0.0]), ordered, log_emission)


def test_a_path_that_looks_lost_may_be_all_that_is_left():
    """A state without return: an outlier makes the first state look impossible, and later steps need it again."""
    transition = np.array([[0.9, 0.1], [0.0, 1.0]])
    log_emission = np.array([[0.0, -900.0]] * 2 + [[-900.0, 0.0]] * 1 + [[0.0, -900.0]] * 4)
    compare(np.array([0.99, 0.01]), transition, log_emission)
    slow = np.array([[0.0, -50.0]] * 2 + [[-300.0, 0.0]] * 3 + [[0.0, -300.0]] * 6)
    compare(np.array([0.5, 0.5]), transition, slow)


def test_a_step_that_skips_a_forced_state_is_absurd_but_possible():
    transition = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    far = -0.5 * (np.array([0.0, 100.0, 200.0]) - np.array([0.0, 0.0, 200.0, 200.0, 200.0])[:, None]) ** 2
    compare(np.array([1.0, 0.0, 0.0]), transition, far)


def test_tiny_transitions_are_exact():
    transition = np.array([[1.0, 1e-300], [1e-250, 1.0]])
    compare(np.array([1.0, 1e-280]), transition, np.array([[0.0, -5.0], [-700.0, 0.0], [0.0, -2.0], [-10.0, 0.0]]))


def test_a_million_steps_do_not_underflow():
    """A stationary chain of independent states: log p(x) is known in closed form."""
    rng = np.random.default_rng(0)
    steps, share = 1_000_000, np.array([0.2, 0.5, 0.3])
    log_emission = rng.normal(-800.0, 3.0, size=(steps, 3))
    offsets = np.array([0, steps])
    smoothed = forward_backward(share, np.tile(share, (3, 1)), log_emission, offsets)
    log_probs = logsumexp(log_emission, b=share, axis=1)
    assert smoothed.log_prob[0] == pytest.approx(log_probs.sum(), rel=1e-12)
    posterior = share * np.exp(log_emission - log_probs[:, None])
    np.testing.assert_allclose(smoothed.posterior, posterior, rtol=0, atol=1e-10)
    np.testing.assert_allclose(smoothed.pairs, posterior[:-1].T @ posterior[1:], rtol=1e-9)
    log_prob, filtered, _ = filter_states(share, np.tile(share, (3, 1)), log_emission, offsets)
    assert log_prob[0] == smoothed.log_prob[0]
    np.testing.assert_allclose(filtered, posterior, rtol=0, atol=1e-10)


@pytest.mark.parametrize("states", [2, 7, 20])
def test_sequences_stay_apart_and_weights_multiply(states):
    initial, transition, log_emission = chain(3, states, 30)
    offsets, weight = np.array([0, 1, 12, 30]), np.array([2.0, 0.5, 3.0])
    memory = Memory()
    for _ in range(2):  # the second time in memory that is not empty
        smoothed = forward_backward(initial, transition, log_emission, offsets, weight, memory)
    pairs, first = np.zeros((states, states)), np.zeros(states)
    for n, (start, stop) in enumerate(itertools.pairwise(offsets)):
        own = forward_backward(initial, transition, log_emission[start:stop], np.array([0, stop - start]))
        assert smoothed.log_prob[n] == pytest.approx(own.log_prob[0], rel=1e-14)
        np.testing.assert_allclose(smoothed.posterior[start:stop], weight[n] * own.posterior, rtol=1e-12)
        pairs += weight[n] * own.pairs
        first += weight[n] * own.first
    np.testing.assert_allclose(smoothed.pairs, pairs, rtol=1e-12)
    np.testing.assert_allclose(smoothed.first, first, rtol=1e-12)


def test_impossible_sequences_are_named_and_spoil_no_other():
    transition = np.array([[0.0, 1.0], [1.0, 0.0]])
    good = np.zeros((3, 2))
    bad = np.array([[0.0, 0.0], [0.0, -np.inf], [0.0, -np.inf], [0.0, 0.0]])  # state 0 cannot follow itself
    nothing = np.array([[0.0, 0.0], [-np.inf, -np.inf], [0.0, 0.0]])
    offsets = np.array([0, 3, 7, 10, 13])
    log_emission = np.concatenate([good, bad, nothing, good])
    for initial, matrix, steps in (
        (np.array([0.5, 0.5]), transition, [-1, 2, 1, -1]),
        (np.array([0.5, 0.5]), np.full((2, 2), 0.5), [-1, -1, 1, -1]),
    ):
        smoothed = forward_backward(initial, matrix, log_emission, offsets)
        log_prob, filtered, impossible = filter_states(initial, matrix, log_emission, offsets)
        assert smoothed.impossible.tolist() == impossible.tolist() == steps
        np.testing.assert_array_equal(np.isneginf(log_prob), np.array(steps) >= 0)
        np.testing.assert_allclose(smoothed.log_prob, log_prob)
        assert smoothed.pairs.sum() == pytest.approx(2 + 2 + 3 * (steps[1] < 0))
        np.testing.assert_allclose(smoothed.posterior[[0, 12]].sum(1), 1.0)
        np.testing.assert_array_equal(smoothed.posterior[7:10], 0.0)
        assert np.isfinite(filtered).all()


def test_two_threads_find_the_same_bits():
    initial, transition, log_emission = chain(0, 8, 5000)
    offsets = np.array([0, 2000, 5000])
    alone = forward_backward(initial, transition, log_emission, offsets)
    torch.set_num_threads(2)
    try:
        together = forward_backward(initial, transition, log_emission, offsets)
    finally:
        torch.set_num_threads(1)
    for one, other in zip(alone[:2], together[:2], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(alone.pairs, together.pairs, rtol=1e-13)
