"""The compiled walk is the walk written out: each uniform number through the cumulative row of the present state."""

from __future__ import annotations

import numpy as np

from likely.sampling.compiled.paths import walk

FIRST = np.array([0.2, 0.5, 0.3])
TABLE = np.array([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5], [0.6, 0.0, 0.4]])


def test_states_are_those_of_inverse_transform_sampling():
    uniform = np.random.default_rng(0).random((20, 30))
    states = walk(FIRST.cumsum(), TABLE.cumsum(1), uniform)
    for path, numbers in zip(states, uniform, strict=True):
        row = FIRST
        for state, number in zip(path, numbers, strict=True):
            assert row[:state].sum() <= number < row[: state + 1].sum() + 1e-12
            assert row[state] > 0
            row = TABLE[state]


def test_a_permutation_is_followed_whatever_the_numbers():
    cycle = np.roll(np.eye(4), 1, axis=1)
    states = walk(np.array([0.0, 1.0, 1.0, 1.0]), cycle.cumsum(1), np.random.default_rng(0).random((3, 9)))
    assert states.tolist() == [[(1 + step) % 4 for step in range(9)]] * 3


def test_the_ends_of_intervals_belong_to_the_next_state():
    """P(u < c) = c for u in [0, 1): a number that equals a cumulative probability is beyond it."""
    states = walk(np.array([0.5, 1.0]), np.array([[0.5, 1.0], [0.5, 1.0]]), np.array([[0.0, 0.5], [0.5, 0.0]]))
    assert states.tolist() == [[0, 1], [1, 0]]
