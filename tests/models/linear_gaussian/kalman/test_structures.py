"""Ready-made state spaces: their states move as the names say."""

from __future__ import annotations

import numpy as np
import pytest

from likely import KalmanFilter
from likely.core.errors import SpecError
from likely.models.linear_gaussian.kalman.structures import local_level, local_trend, seasonal


def seen(arguments, first, steps):
    """What is observed of states that move without noise."""
    state, values = np.array(first, dtype=float), []
    for _ in range(steps):
        values.append(float(np.array(arguments["observation"])[0] @ state))
        state = np.array(arguments["transition"]) @ state
    return values


def test_a_level_stays_and_a_trend_is_a_line():
    assert seen(local_level(), [3.0], 4) == [3.0] * 4
    assert seen(local_trend(), [3.0, 0.5], 4) == [3.0, 3.5, 4.0, 4.5]


@pytest.mark.parametrize("period", [2, 3, 7])
def test_a_season_repeats_and_sums_to_zero(period):
    first = np.arange(1.0, period)
    values = seen(seasonal(period, trend=False), [0.0, *first], 2 * period)
    np.testing.assert_allclose(values[:period], values[period:], atol=1e-12)
    assert abs(sum(values[:period])) < 1e-12
    assert values[0] == first[0]
    with_trend = seen(seasonal(period), [10.0, 2.0, *first], 2 * period)
    np.testing.assert_allclose(with_trend, 10 + 2 * np.arange(2 * period) + values, atol=1e-12)


@pytest.mark.parametrize("arguments", [local_level(), local_trend(), seasonal(4)], ids=["level", "trend", "season"])
def test_only_sizes_of_noise_are_learned(arguments):
    x = np.random.default_rng(0).normal(size=(30, 1)).cumsum(0)
    model = KalmanFilter(**arguments).fit(x)
    np.testing.assert_array_equal(model.transition_, arguments["transition"])
    still = np.array(arguments["transition_covariance"]) == 0
    assert not np.diag(model.transition_covariance_)[still].any()
    assert not (model.transition_covariance_ - np.diag(np.diag(model.transition_covariance_))).any()


def test_a_period_is_an_integer_above_one():
    for wrong in (1, True, 2.5):
        with pytest.raises(SpecError, match=rf"KalmanFilter.seasonal\(period={wrong}\): period must be a"):
            seasonal(wrong)
