from __future__ import annotations

import numpy as np
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from likely import Forecaster
from likely.core.errors import DataError, SpecError
from likely.models.forecasting import ExponentialSmoothing
from likely.models.forecasting.smoothing import Smoother, _surprises, first_state, fit_smoothing
from likely.models.forecasting.windows import Past

RNG = np.random.default_rng(0)
T = np.arange(72)
SERIES = 20 + 0.3 * T + 5 * np.sin(2 * np.pi * T / 4) + RNG.normal(size=72).cumsum()


def by_hand(smoother, z, steps):
    """The recursion, a step at a time."""
    a, b, c, damping = smoother.fractions
    state = first_state(z, smoother.slope, smoother.period, smoother.fractions)
    level, slope, season = state[0], state[1], list(state[2:])
    for value in z:
        due = season.pop(0) if season else 0.0
        surprise = value - (level + damping * slope + due)
        level, slope = level + damping * slope + a * surprise, damping * slope + b * surprise
        season += [due + c * surprise] if smoother.period > 1 else []
    answers = []
    for h in range(1, steps + 1):
        level, slope = level + damping * slope, damping * slope
        answers.append(level + (season[(h - 1) % len(season)] if season else 0.0))
    return answers


def smooth_series(trend, season, steps=120):
    """A series of the very model that is fitted, so that its likelihood has one clear top."""
    damping = {"none": 0.0, "additive": 1.0, "damped": 0.9}[trend]
    smoother = Smoother(trend != "none", season, np.array([0.5, 0.2 * (trend != "none"), 0.2, damping]), 1.0)
    state = np.append([20.0, 0.3 * (trend != "none")], 5 * np.sin(np.arange(season) * np.pi / 2) * (season > 1))
    system, z = smoother.system(state if season > 1 else state[:2]), []
    state = system.initial_mean
    for surprise in np.random.default_rng(0).normal(size=steps):
        state[-1] = surprise
        z.append(float(system.observation[0] @ state))
        state = system.transition @ state
    return np.array(z)


@pytest.mark.parametrize(("trend", "season"), [("none", 1), ("additive", 1), ("damped", 4), ("additive", 4)])
def test_forecasts_are_those_of_the_recursion_and_as_likely_as_statsmodels(trend, season):
    z, spec = smooth_series(trend, season), ExponentialSmoothing(trend, season=season > 1)
    smoother = fit_smoothing(spec, [z], season, np.ones(1))
    ahead = smoother.ahead(Past((z,), np.empty((1, 6, 0))), 6, 0)
    np.testing.assert_allclose(ahead.mean[0], by_hand(smoother, z, 6), rtol=1e-8)
    peer = ETSModel(
        z,
        trend=None if trend == "none" else "add",
        damped_trend=trend == "damped",
        seasonal="add" if season > 1 else None,
        seasonal_periods=season if season > 1 else None,
    ).fit(disp=False)
    surprises = smoother.step_log_prob(z)
    squares = -2 * (surprises + 0.5 * np.log(2 * np.pi * smoother.scale**2)) * smoother.scale**2
    likelihood = -0.5 * len(z) * (np.log(2 * np.pi * squares.sum() / len(z)) + 1)
    assert likelihood >= peer.llf - 0.01  # no less likely than the peer's optimum
    # where both found the same optimum, they say the same
    if abs(likelihood - peer.llf) < 0.01 and np.allclose(smoother.fractions[0], peer.alpha, atol=0.02):
        np.testing.assert_allclose(ahead.mean[0], peer.forecast(6), atol=0.02 * z.std())


@pytest.mark.parametrize("pace", [3, 17, 27, 31, 37])
def test_of_several_tops_the_highest_is_found(pace):
    """No α and β of a grid of 400 are more likely: these series have tops at α of 0.03 to 0.08 and others beside."""
    z = 20 + 0.3 * T + 5 * np.sin(2 * np.pi * T / 4) + np.sqrt(2) * np.sin(pace * T**2 * np.sqrt(2)).cumsum()

    def cost(a, b):
        surprises, _ = _surprises(z, True, 1, np.array([a, b, 0.0, 1.0]))
        return 0.5 * len(z) * np.log(surprises @ surprises)

    a, b, _, _ = fit_smoothing(ExponentialSmoothing("additive", season=False), [z], 1, np.ones(1)).fractions
    assert cost(a, b) < 1e-3 + min(cost(a, a * ratio) for a in np.geomspace(0.002, 1, 25) for ratio in np.r_[:1:16j])


def test_simple_smoothing_widens_by_its_fraction():
    smoother = Smoother(False, 1, np.array([0.3, 0.0, 0.0, 0.0]), 2.0)
    ahead = smoother.ahead(Past((SERIES,), np.empty((1, 5, 0))), 5, 0)
    np.testing.assert_allclose(ahead.variance[0], 4 * (1 + 0.09 * np.arange(5)), rtol=1e-9)


def test_gaps_are_left_to_the_filter_and_paths_have_its_mean(seed):
    """2,000 paths; a mean beyond 5 standard errors comes less than once in 1e6."""
    holes = SERIES.copy()
    holes[[10, 11, 40]] = np.nan
    model = Forecaster(network=ExponentialSmoothing(), season=4, transform="none").fit(holes)
    ahead = model.predict_dist(4)
    drawn = model.sample(2000, steps=4, random_state=seed)
    assert (np.abs(drawn.mean(0) - ahead.mean.numpy()) < 5 * ahead.stddev.numpy() / np.sqrt(2000)).all()
    assert np.isfinite(model.log_prob(holes)).all()


def test_logarithms_make_trend_and_season_multiply():
    growing = np.exp(0.02 * T + 0.3 * np.sin(2 * np.pi * T / 4))
    model = Forecaster(network=ExponentialSmoothing("additive"), season=4, transform="log").fit(growing)
    later = np.arange(72, 76)
    np.testing.assert_allclose(model.predict(4), np.exp(0.02 * later + 0.3 * np.sin(2 * np.pi * later / 4)), rtol=1e-3)


def test_short_series_and_unknown_trends_are_refused():
    with pytest.raises(DataError, match="too short: it has 10 steps"):
        Forecaster(network=ExponentialSmoothing(), season=12).fit(SERIES[:10])
    with pytest.raises(SpecError, match="trend must be"):
        ExponentialSmoothing("wild")
