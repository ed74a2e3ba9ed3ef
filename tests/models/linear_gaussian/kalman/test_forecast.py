"""What comes next, against the joint distribution of past and future."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import norm
from torch.distributions import MultivariateNormal

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.forecast import Forecast, ahead, last_state, seen, seen_covariance, step_ahead
from likely.models.linear_gaussian.kalman.recursion import observe, run_filter

STEPS = 3


def test_steps_ahead_are_those_of_the_joint_distribution(make_system, joint_of, holes):
    x, starts = holes
    system = make_system()
    filtered = run_filter(observe(Ragged.from_numpy(x, starts)), system)
    future = ahead(system, filtered, 4, STEPS)  # after the first sequence
    joint = joint_of(system, 5 + STEPS)
    mean, covariance = joint.given(np.vstack([x[:5], np.full((STEPS, 2), np.nan)]))
    for step in range(STEPS):
        place = joint.states + 2 * (5 + step) + np.arange(2)
        np.testing.assert_allclose(future.mean[step], mean[place], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(future.covariance_matrix[step], covariance[np.ix_(place, place)], rtol=1e-8)


def test_one_step_of_the_state_and_what_is_seen_of_it(make_system):
    system = make_system()
    mean, covariance = step_ahead(system, system.initial_mean, system.initial_covariance)
    a, c = system.transition, system.observation
    np.testing.assert_allclose(mean, a @ system.initial_mean + system.transition_offset)
    np.testing.assert_allclose(covariance, a @ system.initial_covariance @ a.T + system.transition_covariance)
    np.testing.assert_allclose(seen(system, mean), c @ mean + system.observation_offset)
    np.testing.assert_allclose(
        seen_covariance(system, covariance), c @ covariance @ c.T + system.observation_covariance
    )


def test_the_last_state_is_that_of_the_joint_distribution(make_system, joint_of, holes):
    x, starts = holes
    system = make_system()
    mean, covariance = last_state(run_filter(observe(Ragged.from_numpy(x, starts)), system), 4)
    joint = joint_of(system, 5)
    expected, spread = joint.given(x[:5])
    last = slice(joint.states - 2, joint.states)
    np.testing.assert_allclose(mean, expected[last], rtol=1e-8)
    np.testing.assert_allclose(covariance, spread[last, last], rtol=1e-8)


def test_an_interval_has_its_probability():
    covariance = torch.tensor([[4.0, 1.0], [1.0, 9.0]], dtype=torch.float64)
    mean = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    forecast = Forecast(MultivariateNormal(mean, covariance), level=0.8)
    inside = norm([1.0, 2.0], [2.0, 3.0])
    np.testing.assert_allclose(inside.cdf(forecast.upper) - inside.cdf(forecast.lower), [[0.8, 0.8]], rtol=1e-9)
    np.testing.assert_allclose(forecast.lower + forecast.upper, 2 * forecast.mean)
