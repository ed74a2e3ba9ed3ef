from __future__ import annotations

import numpy as np
import pytest

from likely import Forecaster
from likely.core.errors import DataError
from likely.models.forecasting import Dynamics, Naive, SeasonalNaive

WALK = np.random.default_rng(0).normal(size=200).cumsum()


def test_the_variance_of_the_naive_forecast_grows_linearly():
    model = Forecaster(network=Naive(), transform="none").fit(WALK)
    variance = model.predict_dist(10).variance.numpy()
    np.testing.assert_allclose(variance, np.mean(np.diff(WALK) ** 2) * np.arange(1, 11), rtol=1e-9)
    np.testing.assert_allclose(model.predict(10), WALK[-1])


def test_the_trend_is_the_mean_step():
    model = Forecaster(network=Naive(trend=True), transform="none").fit(WALK)
    np.testing.assert_allclose(model.predict(5), WALK[-1] + np.diff(WALK).mean() * np.arange(1, 6), rtol=1e-9)


def test_the_seasonal_forecast_repeats_the_season_and_widens_by_the_season():
    model = Forecaster(network=SeasonalNaive(), season=4, transform="none").fit(WALK)
    np.testing.assert_allclose(model.predict(8), np.tile(WALK[-4:], 2))
    variance = model.predict_dist(8).variance.numpy()
    np.testing.assert_allclose(variance[4:], 2 * variance[:4], rtol=1e-9)


def test_dynamics_are_read_from_text_and_short_series_refused():
    assert Dynamics.parse("naive(trend=true)") == Naive(trend=True)
    assert Forecaster(network="seasonal_naive()", season=4, transform="none").fit(WALK).predict(1) == WALK[-4]
    with pytest.raises(DataError, match="two or more values that lie 12 steps apart"):
        Forecaster(network=SeasonalNaive(), season=12).fit(WALK[:10])
