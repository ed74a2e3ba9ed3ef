"""Which transitions are allowed, and where a chain is in the long run."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import SpecError
from likely.models.markov.transitions import allowed_transitions, long_run


@pytest.mark.parametrize(("name", "rule"), [("full", lambda i, j: True), ("left-right", lambda i, j: j >= i)])
def test_named_transitions(name, rule):
    allowed, first = allowed_transitions(name, 4)
    np.testing.assert_array_equal(allowed, [[rule(i, j) for j in range(4)] for i in range(4)])
    assert first.tolist() == ([True] * 4 if name == "full" else [True, False, False, False])


def test_a_cycle_stays_or_moves_to_the_next():
    allowed, first = allowed_transitions("cyclic", 3)
    assert allowed.astype(int).tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert first.all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("ring", 'transitions=\'ring\': use "full", "left-right", "cyclic", or an array'),
        (np.eye(2), r"transitions has shape \(2, 2\), but 3 states need \(3, 3\)"),
        ([[1, 0, 0], [0, 0, 0], [1, 1, 1]], "row 1 of transitions allows nothing: state 1 has no successor"),
        ([["a"]], "of which transitions are allowed"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(given, words):
    with pytest.raises(SpecError, match=words):
        allowed_transitions(given, 3)


def test_the_long_run_is_the_left_eigenvector():
    transition = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    values, vectors = np.linalg.eig(transition.T)
    stationary = np.real(vectors[:, np.argmax(values.real)])
    np.testing.assert_allclose(long_run(np.eye(4)[0], transition), stationary / stationary.sum(), rtol=1e-9)


def test_the_long_run_of_a_cycle_is_even():
    np.testing.assert_allclose(long_run(np.eye(3)[0], np.roll(np.eye(3), 1, axis=1)), np.full(3, 1 / 3), rtol=1e-9)


def test_the_long_run_depends_on_where_absorbing_states_are_reached_from():
    """Gambler's ruin with even odds: from 1 of 3 the chance to win is 1/3."""
    transition = np.array([[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1]])
    np.testing.assert_allclose(long_run(np.eye(4)[1], transition), [2 / 3, 0, 0, 1 / 3], atol=1e-9)
