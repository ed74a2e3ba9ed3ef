"""Where EM begins: what is given is kept, and the first guess is already good."""

from __future__ import annotations

import numpy as np
import pytest

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.recursion import System, observe, run_filter, simulate
from likely.models.linear_gaussian.kalman.start import first_systems

NOTHING = dict.fromkeys(System._fields)


@pytest.fixture
def turning():
    """A slow rotation in the plane, seen with a little noise: 300 steps of two columns."""
    random = np.random.default_rng(0)
    turn = 0.99 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    states = simulate(turn, np.zeros(2), np.array([2.0, 0.0]), 0.3 * random.normal(size=(299, 2)))
    return observe(Ragged.from_numpy(states + 0.01 * random.normal(size=(300, 2)), np.array([0, 300]))), turn


def test_what_is_given_is_kept(turning, make_system):
    data, _ = turning
    given = make_system()._asdict() | {"transition": None, "observation_covariance": None}
    learn = frozenset({"transition", "observation_covariance"})
    for system in first_systems(data, given, learn, 2, [0, 1, 2]):
        for name in set(System._fields) - learn:
            np.testing.assert_array_equal(getattr(system, name), given[name])
        assert np.abs(np.linalg.eigvals(system.transition)).max() <= 0.99 + 1e-9
        assert (np.linalg.eigvalsh(system.observation_covariance) > 0).all()


def test_known_states_are_regressed_on_those_before(turning):
    data, turn = turning
    given = NOTHING | {"observation": np.eye(2), "observation_offset": np.zeros(2)}
    learn = frozenset({"transition", "transition_covariance"})
    (system,) = first_systems(data, given, learn, 2, [0])
    x = data.x
    expected = np.linalg.lstsq(x[:-1], x[1:], rcond=None)[0].T
    expected *= 0.99 / max(0.99, np.abs(np.linalg.eigvals(expected)).max())  # a start does not explode
    np.testing.assert_allclose(system.transition, expected, rtol=1e-4, atol=1e-4)  # but for a little shrinkage
    np.testing.assert_allclose(system.transition, turn, atol=0.1)


def test_windows_guess_the_frequency_of_what_turns(turning):
    """Eigenvalues do not depend on the basis of the states: |angle| = 0.3."""
    data, _ = turning
    (system,) = first_systems(data, NOTHING, frozenset(System._fields), 2, [0])
    np.testing.assert_allclose(np.abs(np.angle(np.linalg.eigvals(system.transition))), 0.3, atol=0.05)


def test_sizes_of_noise_are_found_by_descent(turning):
    data, turn = turning
    given = NOTHING | {"transition": turn, "observation": np.eye(2)}
    learn = frozenset({"transition_covariance", "observation_covariance"})
    (system,) = first_systems(data, given, learn, 2, [0])
    np.testing.assert_allclose(np.diag(system.transition_covariance), 0.09, rtol=0.5)
    plain = system._replace(transition_covariance=np.eye(2), observation_covariance=np.eye(2))
    assert run_filter(data, system).log_prob.sum() > run_filter(data, plain).log_prob.sum() + 100


@pytest.mark.parametrize("learn", [System._fields, ("transition_covariance", "observation_covariance")])
def test_series_count_as_often_as_their_weights_say(turning, learn):
    """Not all series begin alike: without its weights, the guess is another one."""
    data, turn = turning
    known = NOTHING | ({} if len(learn) > 2 else {"transition": turn, "observation": np.eye(2)})
    x = np.concatenate([data.x[:120], 3 * data.x[:90]])
    once = observe(Ragged.from_numpy(x, np.array([0, 120, 210])))
    twice = observe(Ragged.from_numpy(np.concatenate([x, x[120:]]), np.array([0, 120, 210, 300])))
    (repeated,) = first_systems(twice, known, frozenset(learn), 2, [0])
    (weighted,) = first_systems(once, known, frozenset(learn), 2, [0], np.array([1.0, 2.0]))
    (plain,) = first_systems(once, known, frozenset(learn), 2, [0])
    for name in learn:
        size = np.abs(getattr(repeated, name)).max()
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=0, atol=1e-3 * size)
    assert not np.allclose(plain.observation_covariance, repeated.observation_covariance, rtol=0.01)


def test_other_seeds_are_disturbed_and_repeatable(turning):
    data, _ = turning
    first, second = (first_systems(data, NOTHING, frozenset(System._fields), 2, [0, 1, 2]) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.transition, other.transition)
    assert not np.allclose(first[1].transition, first[2].transition)
