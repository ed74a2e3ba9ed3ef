"""The matrices of a Kalman filter as people write them, and words for those that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import SpecError
from likely.models.linear_gaussian.kalman.matrices import DIFFUSE, count_states, read_learn, read_matrix
from likely.models.linear_gaussian.kalman.recursion import System


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("transition_covariance", 2.0, [[2, 0], [0, 2]]),
        ("transition_covariance", [3, 0], [[3, 0], [0, 0]]),
        ("observation_offset", 1, [1, 1, 1]),
        ("initial_mean", [1, 2], [1, 2]),
        ("observation", [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [1, 1]]),
        ("initial_covariance", "diffuse", DIFFUSE * 4 * np.eye(2)),
    ],
)
def test_numbers_and_vectors_become_arrays_of_their_shape(name, value, expected):
    array = read_matrix(name, value, 2, 3, scale=4.0)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, expected)
    assert read_matrix(name, None, 2, 3, 4.0) is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("transition", [[1.0]], r"transition has shape \(1, 1\); for 2 states it must be \(2, 2\)"),
        ("transition", 1.0, r"transition has shape \(\); for 2 states"),
        ("observation", np.eye(2), r"for 2 states and 3 columns of X it must be \(3, 2\)"),
        ("initial_mean", [0.0, np.nan], "initial_mean has the value nan; all its values must be finite"),
        ("initial_mean", "diffuse", r"initial_mean='diffuse'\): initial_mean must be numbers \("),
        ("initial_covariance", "vague", 'initial_covariance must be numbers or "diffuse"'),
        ("initial_covariance", [[1, 0.5], [0, 1]], r"not symmetric: 0.5 at \(0, 1\), but 0 at \(1, 0\)"),
        ("initial_covariance", [[1, 2], [2, 1]], "not a covariance: its smallest eigenvalue is -1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(name, value, words):
    with pytest.raises(SpecError, match=words):
        read_matrix(name, value, 2, 3, 1.0)


def test_states_are_counted_as_said_or_as_given():
    assert count_states(5, {"transition": np.eye(2)}) == 5
    assert count_states(None, {"observation": np.ones((4, 3))}) == 3
    assert count_states(None, {"initial_covariance": [1.0, 2.0, 3.0]}) == 3
    assert count_states(None, {"initial_mean": 0.0}) == 2
    for wrong in (0, True, 1.5):
        with pytest.raises(SpecError, match=rf"KalmanFilter\(n_states={wrong}\)"):
            count_states(wrong, {})


def test_what_is_not_given_is_learned():
    nothing = dict.fromkeys(System._fields)
    assert read_learn(None, nothing) == set(System._fields) - {"transition_offset"}
    given = nothing | {"observation": np.eye(2)}
    assert read_learn(None, given) == set(System._fields) - {"transition_offset", "observation", "observation_offset"}
    assert read_learn("observation", nothing) == {"observation"}
    with pytest.raises(SpecError, match="names 'noise'; it can name transition, transition_offset"):
        read_learn(["noise"], nothing)
