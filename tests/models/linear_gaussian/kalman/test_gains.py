"""The covariance recursion against textbook formulas, and what it shares between steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.gains import gains
from likely.models.linear_gaussian.kalman.recursion import observe


def asked(system, data, **options):
    names = ("transition", "transition_covariance", "observation", "observation_covariance", "initial_covariance")
    return gains(data.pattern, data.starts, data.seen, *(getattr(system, name) for name in names), **options)


@pytest.mark.parametrize("steady", [1e-14, -1.0], ids=["shared", "each"])
def test_each_step_is_that_of_the_textbook(make_system, holes, steady):
    x, starts = holes
    system, data = make_system(), observe(Ragged.from_numpy(*holes))
    a, c, r = system.transition, system.observation, system.observation_covariance
    table = asked(system, data, steady=steady)
    assert table.failed == -1
    filtered = np.zeros((2, 2))
    for t, row in enumerate(x):
        known, step = ~np.isnan(row), table.step[t]
        after = system.initial_covariance if t in starts else a @ filtered @ a.T + system.transition_covariance
        look, noise = c[known], r[np.ix_(known, known)]
        spread = look @ after @ look.T + noise
        gain = after @ look.T @ np.linalg.inv(spread)
        filtered = after - gain @ look @ after
        np.testing.assert_allclose(table.predicted[step], after, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(table.filtered[step], filtered, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(table.gain[step][:, known], gain, rtol=1e-8, atol=1e-10)
        assert not table.gain[step][:, ~known].any()
        whiten = table.whiten[step][np.ix_(known, known)]
        np.testing.assert_allclose(whiten @ spread @ whiten.T, np.eye(known.sum()), atol=1e-9)
        constant = -0.5 * np.linalg.slogdet(2 * np.pi * spread)[1]
        assert table.constant[step] == pytest.approx(constant, rel=1e-9, abs=1e-12)


def test_the_covariance_comes_to_rest_at_riccatis_solution(make_system):
    system = make_system(3)
    table = asked(system, observe(Ragged.from_numpy(np.zeros((400, 2)), np.array([0, 400]))))
    a, c = system.transition, system.observation
    rest = solve_discrete_are(a.T, c.T, system.transition_covariance, system.observation_covariance)
    np.testing.assert_allclose(table.predicted[table.step[-1]], rest, rtol=1e-9)
    assert len(table.gain) < 200  # of 400 steps: the last ones follow themselves


def test_sequences_share_their_first_steps(make_system):
    table = asked(make_system(), observe(Ragged.from_numpy(np.zeros((12, 2)), np.array([0, 4, 8, 12]))), steady=-1.0)
    assert table.step.tolist() == [0, 1, 2, 3] * 3


def test_a_singular_observation_is_reported(make_system):
    system = make_system()._replace(observation=np.zeros((2, 2)), observation_covariance=np.zeros((2, 2)))
    assert (
        asked(system, observe(Ragged.from_numpy(np.array([[np.nan, np.nan], [1.0, 2.0]]), np.array([0, 2])))).failed
        == 1
    )
