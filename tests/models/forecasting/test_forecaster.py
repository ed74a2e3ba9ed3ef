"""Autoregressions are least squares, forecasts are calibrated, and better than naive ones on real series."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch

from likely import Forecaster
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.inference import Exact
from likely.models.forecasting import Naive, SeasonalNaive

RNG = np.random.default_rng(0)


def autoregression(weights, length, rng, bias=0.0):
    z = np.zeros(length + 50)
    for t in range(len(weights), len(z)):
        z[t] = bias + sum(w * z[t - 1 - k] for k, w in enumerate(weights)) + rng.normal()
    return z[50:]


SERIES = autoregression((0.5, 0.3), 300, RNG, 1.0)


def test_an_autoregression_is_least_squares_on_the_lag_matrix():
    model = Forecaster(lags=3, transform="none", season=None, inference=Exact()).fit(SERIES)
    at = np.arange(3, 300)
    X = np.column_stack([np.ones(297), SERIES[at - 1], SERIES[at - 2], SERIES[at - 3]])
    theta, (residual,), *_ = np.linalg.lstsq(X, SERIES[at], rcond=None)
    np.testing.assert_allclose(model.parts_["regressor"].coef_, theta[1:], rtol=1e-8)
    np.testing.assert_allclose(model.predict(1), [1.0, *SERIES[:-4:-1]] @ theta, rtol=1e-8)
    np.testing.assert_allclose(model.predict_dist(1).variance, residual / 297, rtol=1e-8)


def test_log_prob_sums_one_step_densities_on_the_scale_of_the_data():
    positive = np.exp(SERIES / 4)
    model = Forecaster(lags=2, transform="log", season=None, inference=Exact()).fit(positive)
    total = 0.0
    for t in range(2, 300):
        total += float(model.predict_dist(1, series=positive[:t]).log_prob(torch.tensor(positive[t])).sum())
    np.testing.assert_allclose(model.log_prob(positive), [total], rtol=1e-8)
    assert model.score(positive) == pytest.approx(total)


def test_the_future_depends_on_the_last_lags_alone():
    model = Forecaster(lags=2, transform="none", season=None, inference=Exact()).fit(SERIES)
    other = np.concatenate([RNG.normal(size=40), SERIES[-2:]])
    np.testing.assert_allclose(model.predict(5, series=other), model.predict(5), rtol=1e-12)


def test_long_forecasts_tend_to_the_stationary_mean_and_variance():
    model = Forecaster(lags=1, transform="none", season=None, inference=Exact()).fit(SERIES)
    (a,), sigma = model.parts_["regressor"].coef_, float(model.predict_dist(1).stddev)
    far = model.predict_dist(400)
    assert float(far.variance[-1]) == pytest.approx(sigma**2 / (1 - a**2), rel=1e-6)
    steps = model.predict(400)
    np.testing.assert_allclose(steps[-1], steps[-2], rtol=1e-6)


def test_intervals_of_simulated_series_are_calibrated(seed):
    """80 % intervals 4 steps ahead of 60 series by a fresh fit each: 240 steps in 60 independent groups.

    Were they right, the fraction covered would have a standard error below 0.04 even if steps of a series went
    together half the time; 0.8 ± 0.2 is 5 of those: a false alarm less than once in 1e6.
    """
    rng, inside = np.random.default_rng(seed), []
    for _ in range(60):
        z = autoregression((0.6, 0.2), 84, rng)
        model = Forecaster(lags=2, transform="none", season=None, random_state=0).fit(z[:80])
        lower, upper = model.predict_interval(4, level=0.8)
        inside.append((lower <= z[80:]) & (z[80:] <= upper))
    assert 0.6 < np.mean(inside) < 0.97


def test_defaults_beat_naive_forecasts_on_real_series_and_cover_them():
    co2 = sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean()[-240:]
    nile = sm.datasets.nile.load_pandas().data["volume"].to_numpy(dtype=float)
    for series, steps, naive in ((co2, 12, SeasonalNaive()), (nile, 8, Naive())):
        ours = Forecaster(random_state=0).fit(series).backtest(origins=3, steps=steps, refit=True)
        theirs = Forecaster(network=naive).fit(series).backtest(origins=3, steps=steps, refit=True)
        assert ours.weighted_quantile_loss < 0.7 * theirs.weighted_quantile_loss
        assert 0.6 <= ours.coverage <= 1.0


def test_a_backtest_in_one_pass_is_the_forecasts_from_each_origin():
    model = Forecaster(lags=2, transform="none", season=None, random_state=0).fit(SERIES)
    result = model.backtest(SERIES, origins=[100, 200], steps=3)
    for place, origin in enumerate((100, 200)):
        np.testing.assert_allclose(result.mean[place], model.predict(3, series=SERIES[:origin]), rtol=1e-9)
        np.testing.assert_array_equal(result.actual[place], SERIES[origin : origin + 3])
    again = model.backtest(SERIES, origins=[100], steps=3, refit=True)
    alone = Forecaster(lags=2, transform="none", season=None, random_state=0).fit(SERIES[:100])
    np.testing.assert_allclose(again.mean[0], alone.predict(3), rtol=1e-9)
    with pytest.raises(DataError, match="an origin needs rows before and after it"):
        model.backtest(SERIES, origins=[300])


def test_several_series_and_channels_are_one_model_with_units_of_their_own():
    series = [1000 * SERIES[:100], SERIES[100:220]]
    model = Forecaster(lags=2, transform="none", inference=Exact()).fit(series)
    swapped = Forecaster(lags=2, transform="none", inference=Exact()).fit([SERIES[:100], 50 * SERIES[100:220]])
    np.testing.assert_allclose(model.predict(3)[0], 1000 * swapped.predict(3)[0], rtol=1e-8)
    channels = np.column_stack([SERIES, 3 * SERIES + 1])
    both = Forecaster(lags=2, transform="none", inference=Exact()).fit(channels)
    assert both.predict(3).shape == (3, 2)
    np.testing.assert_allclose(both.predict(3)[:, 1], 3 * both.predict(3)[:, 0] + 1, rtol=1e-8)
    assert both.predict_dist(3).batch_shape == (3, 2)
    assert model.sample(5, steps=3).shape == (5, 2, 3)


def test_gaps_do_not_count_and_do_not_stop_a_forecast():
    holes = SERIES.copy()
    holes[[50, 51, 120]] = np.nan
    model = Forecaster(lags=2, transform="none", season=None, inference=Exact()).fit(holes)
    whole = Forecaster(lags=2, transform="none", season=None, inference=Exact()).fit(SERIES)
    np.testing.assert_allclose(model.predict(5), whole.predict(5), atol=0.2 * SERIES.std())
    assert np.isfinite(model.log_prob(holes)).all()


def test_a_constant_series_is_forecast_as_such_with_a_word():
    with pytest.warns(LikelyWarning, match="is constant in channel '0'"):
        model = Forecaster().fit(np.full(30, 5.0))
    np.testing.assert_allclose(model.predict(3), 5.0, rtol=1e-6)


def test_dates_say_the_season(seed):
    index = pd.date_range("2020-01-01", periods=120, freq="MS")
    series = pd.Series(np.random.default_rng(seed).normal(size=120) + 20, index=index)
    assert Forecaster().fit(series).season_ == 12
    assert Forecaster(season=None).fit(series).season_ == 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.predict(0), "steps=0: how many steps ahead must be an integer above 0"),
        (lambda model: model.predict(2, series=np.ones((30, 2))), "series has 2 channels; the model was fitted on 1"),
        (lambda model: model.predict_interval(2, level=1.0), "strictly between 0 and 1"),
        (lambda model: model.sample(0, steps=2), "n=0: how many to draw"),
    ],
)
def test_questions_that_will_not_do_are_refused_by_name(ask, message):
    model = Forecaster(lags=2, transform="none").fit(SERIES)
    with pytest.raises(DataError, match=message):
        ask(model)


def test_arguments_that_will_not_do_are_refused_by_name():
    with pytest.raises(SpecError, match="horizon must be a positive integer or None"):
        Forecaster(horizon=0).fit(SERIES)
    with pytest.raises(DataError, match="too short"):
        Forecaster(lags=50).fit(SERIES[:30])
    with pytest.raises(DataError, match="not known: give future="):
        Forecaster(lags=2, covariates=(1,)).fit(np.column_stack([SERIES, SERIES])).predict(2)
