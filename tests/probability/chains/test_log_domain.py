"""The recursions in logarithms: as in plain numbers where those suffice, and right where they do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.probability.chains.log_domain import forward_in_logs, smooth_in_logs

OFFSETS = np.array([0, 4, 5, 9])
WEIGHT = np.array([1.0, 2.0, 0.5])


def chain(seed=0, states=3):
    random = np.random.default_rng(seed)
    initial, transition = random.dirichlet(np.ones(states)), random.dirichlet(np.ones(states), states)
    return initial, transition, random.normal(size=(OFFSETS[-1], states))


def forwards(log_initial, log_transition, log_emission):
    filtered, log_prob, impossible = np.empty(log_emission.shape), np.empty(3), np.full(3, -1)
    forward_in_logs(log_initial, log_transition, log_emission, OFFSETS, filtered, log_prob, impossible)
    return filtered, log_prob, impossible


def smoothed(log_initial, log_transition, log_emission):
    states = len(log_initial)
    posterior, pairs, first = np.empty(log_emission.shape), np.zeros((states, states)), np.zeros(states)
    log_prob, impossible = np.empty(3), np.full(3, -1)
    chain = (log_initial, log_transition, log_emission, OFFSETS, WEIGHT, np.arange(3))
    smooth_in_logs(*chain, posterior, pairs, first, log_prob, impossible)
    return posterior, pairs, first, log_prob, impossible


def in_plain_numbers(initial, transition, emission):
    """Filtered, p(x), γ, Σξ and γ₁ of the textbook, sequence by sequence."""
    alpha, beta, log_prob = np.empty_like(emission), np.ones_like(emission), np.empty(3)
    pairs, first = np.zeros_like(transition), np.zeros_like(initial)
    for n, (start, stop) in enumerate(itertools.pairwise(OFFSETS)):
        for t in range(start, stop):
            alpha[t] = emission[t] * (initial if t == start else alpha[t - 1] @ transition)
        for t in range(stop - 2, start - 1, -1):
            beta[t] = transition @ (emission[t + 1] * beta[t + 1])
        total = alpha[stop - 1].sum()
        log_prob[n] = np.log(total)
        for t in range(start + 1, stop):
            pairs += WEIGHT[n] * np.outer(alpha[t - 1], emission[t] * beta[t]) * transition / total
        first += WEIGHT[n] * alpha[start] * beta[start] / total
    own = alpha * beta
    posterior = np.repeat(WEIGHT, np.diff(OFFSETS))[:, None] * own / own.sum(1, keepdims=True)
    return alpha / alpha.sum(1, keepdims=True), log_prob, posterior, pairs, first


def test_they_are_the_recursions_in_plain_numbers():
    initial, transition, log_emission = chain()
    expected = in_plain_numbers(initial, transition, np.exp(log_emission))
    logs = np.log(initial), np.log(transition), log_emission
    filtered, log_prob, impossible = forwards(*logs)
    np.testing.assert_allclose(filtered, expected[0], rtol=1e-11)
    np.testing.assert_allclose(log_prob, expected[1], rtol=1e-11)
    posterior, pairs, first, same, _ = smoothed(*logs)
    for value, wanted in zip((posterior, pairs, first, same), (*expected[2:], expected[1]), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-10)
    assert impossible.tolist() == [-1, -1, -1]


def test_a_scale_of_each_step_leaves_the_states_as_they_are():
    """Densities of e⁻⁹⁰⁰ and e⁹⁰⁰, which no float64 holds, move log p(x) and nothing else."""
    initial, transition, log_emission = chain(1)
    shift = 900.0 * np.array([-1, 1, 1, 1, -1, 1, -1, -1, -1])
    plain = smoothed(np.log(initial), np.log(transition), log_emission)
    moved = smoothed(np.log(initial), np.log(transition), log_emission + shift[:, None])
    for value, wanted in zip(moved[:3], plain[:3], strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9)
    np.testing.assert_allclose(moved[3], plain[3] + np.add.reduceat(shift, OFFSETS[:-1]), rtol=1e-12)


def test_a_path_that_seemed_lost_may_be_the_only_one_left():
    """From state 0 only a step of e⁻⁸⁰⁰ leads to state 1, which the second observation needs."""
    with np.errstate(divide="ignore"):
        log_initial = np.log([1.0, 0.0])
        log_emission = np.log([[1.0, 1.0], *[[0.0, 1.0]] * 3, [1.0, 1.0], *[[1.0, 0.0]] * 4])
    log_transition = np.array([[0.0, -800.0], [-800.0, 0.0]])
    filtered, log_prob, _ = forwards(log_initial, log_transition, log_emission)
    assert log_prob == pytest.approx([-800.0, 0.0, 0.0], abs=1e-9)
    np.testing.assert_allclose(filtered[:4], [[1, 0], [0, 1], [0, 1], [0, 1]], atol=1e-12)


def test_an_impossible_sequence_says_where():
    initial, transition, log_emission = chain(2)
    log_emission[7] = -np.inf
    filtered, log_prob, impossible = forwards(np.log(initial), np.log(transition), log_emission)
    assert impossible.tolist() == [-1, -1, 2]
    assert log_prob[2] == -np.inf
    assert not filtered[7:].any()
    posterior, pairs, *_ = smoothed(np.log(initial), np.log(transition), log_emission)
    assert not posterior[5:].any()
    assert pairs.sum() == pytest.approx(3.0)  # the three steps of the first sequence alone
