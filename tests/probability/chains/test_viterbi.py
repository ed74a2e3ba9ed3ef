from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.probability.chains import best_paths, best_paths_backwards, filter_states, viterbi


def chain(seed, states, steps):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), states)
    return rng.dirichlet(np.ones(states)), transition, 2 * rng.normal(size=(steps, states))


def log_joint(path, initial, transition, log_emission):
    with np.errstate(divide="ignore"):
        moves = np.log(initial[path[0]]) + np.log(transition[path[:-1], path[1:]]).sum()
    return moves + log_emission[np.arange(len(path)), path].sum()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ordered", [False, True])
def test_it_is_the_best_of_all_paths(seed, ordered):
    initial, transition, log_emission = chain(seed, 3, 6)
    if ordered:
        transition = np.triu(transition) / np.triu(transition).sum(1, keepdims=True)
    paths = np.array(list(itertools.product(range(3), repeat=6)))
    values = np.array([log_joint(path, initial, transition, log_emission) for path in paths])
    path, log_prob = viterbi(initial, transition, log_emission, np.array([0, 6]))
    np.testing.assert_array_equal(path, paths[values.argmax()])
    assert log_prob[0] == pytest.approx(values.max(), rel=1e-13)


def test_sequences_stay_apart():
    initial, transition, log_emission = chain(0, 4, 40)
    offsets = np.array([0, 1, 25, 40])
    path, log_prob = viterbi(initial, transition, log_emission, offsets)
    for n, (start, stop) in enumerate(itertools.pairwise(offsets)):
        own, value = viterbi(initial, transition, log_emission[start:stop], np.array([0, stop - start]))
        np.testing.assert_array_equal(path[start:stop], own)
        assert log_prob[n] == value[0]


def test_a_million_steps():
    """Where all moves are alike, the best path is the best state of each step."""
    log_emission = np.random.default_rng(0).normal(-800.0, 1.0, size=(1_000_000, 3))
    path, log_prob = viterbi(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), log_emission, np.array([0, 1_000_000]))
    np.testing.assert_array_equal(path, log_emission.argmax(1))
    assert log_prob[0] == pytest.approx(log_emission.max(1).sum() - 1e6 * np.log(3), rel=1e-12)


def test_without_a_possible_path_the_probability_is_zero():
    transition = np.array([[0.0, 1.0], [1.0, 0.0]])
    log_emission = np.array([[0.0, -np.inf], [0.0, -np.inf]])
    assert viterbi(np.array([1.0, 0.0]), transition, log_emission, np.array([0, 2]))[1].tolist() == [-np.inf]


def test_scores_need_not_be_probabilities():
    """Scores beyond the range of exponentials."""
    rng = np.random.default_rng(1)
    first, moves, scores = (900 * rng.normal(size=shape) for shape in ((3,), (3, 3), (5, 3)))
    paths = np.array(list(itertools.product(range(3), repeat=5)))
    values = first[paths[:, 0]] + scores[np.arange(5), paths].sum(1) + moves[paths[:, :-1], paths[:, 1:]].sum(1)
    path, score = best_paths(first, moves, scores, np.array([0, 5]))
    np.testing.assert_array_equal(path, paths[values.argmax()])
    assert score[0] == pytest.approx(values.max(), rel=1e-12)


def test_a_chain_told_from_its_end_has_the_same_best_path():
    initial, transition, log_emission = chain(3, 3, 6)
    offsets = np.array([0, 2, 6])
    _, filtered, _ = filter_states(initial, transition, log_emission, offsets)
    before = filtered[:, :, None] * transition
    log_before = np.log(before / before.sum(1, keepdims=True))
    path = best_paths_backwards(np.log(filtered), log_before, offsets)
    np.testing.assert_array_equal(path, viterbi(initial, transition, log_emission, offsets)[0])
