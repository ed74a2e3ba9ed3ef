"""Forecasts: 96 hours ahead of ETTh1, and a year ahead of the air passengers with intervals.

ETTh1: the published split (8,640 hours to train, 2,880 to choose by, 2,880 to test), units of the training hours, all
windows of the test part, each of the 7 channels from its own past. The model is `Forecaster(lags=336, horizon=96)`: a
linear map for each hour ahead, with a normal prior, in closed form; the hours between choose the scale of the prior.
Published: PatchTST 0.370 / 0.400, DLinear 0.375 / 0.399 (MSE / MAE).

Air passengers: defaults, fitted anew at three origins to what came before, 12 months ahead. Weighted quantile loss,
mean over the quantiles 0.1 … 0.9; published 0.047 to 0.060 for AutoARIMA, AutoETS and DeepAR. Time against the best of
statsmodels' exponential smoothings by AICc, and against AutoARIMA and AutoETS where statsforecast is installed.
"""

from __future__ import annotations

import gzip
import importlib.util
from typing import Any

import numpy as np

from likely import Forecaster
from likely.models.forecasting.backtest import Backtest
from likely.priors import Normal

from .datasets import FOLDER
from .timing import Result, compare, interleave, show

__all__ = ["run"]

TRAIN, VALIDATE, TEST = 8640, 2880, 2880
HORIZON, PAST = 96, 336
SCALES = (0.005, 0.02, 0.1, 1.0)
"""Of the prior on the weights."""
ORIGINS, MONTHS = (108, 120, 132), 12


def run(repeats: int = 3) -> list[Result]:
    """All lines."""
    return [*electricity(), *passengers(repeats)]


def electricity() -> list[Result]:
    """MSE and MAE over all windows of the test hours."""
    with gzip.open(FOLDER / "ETTh1.csv.gz", "rt") as file:
        rows = [[float(value) for value in line.split(",")[1:]] for line in file.read().splitlines()[1:]]
    hours = np.array(rows)[: TRAIN + VALIDATE + TEST]
    hours = (hours - hours[:TRAIN].mean(0)) / hours[:TRAIN].std(0)
    models = {scale: _linear(scale).fit(hours[:TRAIN]) for scale in SCALES}
    first = TRAIN + VALIDATE
    chosen = min(SCALES, key=lambda scale: _windows(models[scale], hours[:first], TRAIN).mse)
    result, words = _windows(models[chosen], hours, first), f"prior Normal({chosen}), chosen by the hours between"
    name = f"ETTh1, {HORIZON} hours ahead, {len(result.origins):,} windows × 7 channels"
    return [
        Result(f"{name}, MSE", "PatchTST (published)", result.mse, 0.370, words, True, 1.0, "error"),
        Result(f"{name}, MAE", "PatchTST (published)", result.mae, 0.400, words, True, 0.392 / 0.400, "error"),
    ]


def _linear(scale: float) -> Forecaster:
    prior = Normal(scale)
    return Forecaster(lags=PAST, horizon=HORIZON, transform="none", prior=prior, inference="exact()", random_state=0)


def _windows(model: Forecaster, hours: np.ndarray, first: int) -> Backtest:
    """Forecasts of all windows after the first hours."""
    return model.backtest(hours, origins=range(first, len(hours) - HORIZON + 1), steps=HORIZON)


def passengers(repeats: int) -> list[Result]:
    """Loss, coverage and time of a year ahead."""
    lines = (FOLDER / "air_passengers.csv").read_text().splitlines()[1:]
    series = np.array([float(line.split(",")[1]) for line in lines if line])
    model = Forecaster(season=12, random_state=0).fit(series)
    result = model.backtest(origins=ORIGINS, steps=MONTHS, refit=True)
    covered = f"80% intervals hold {result.coverage:.0%}"
    loss = result.weighted_quantile_loss
    name = "air passengers, 3 origins × 12 months"
    held = 0.75 <= result.coverage <= 0.90
    out = [
        Result(
            f"{name}, weighted quantile loss",
            "AutoARIMA (published)",
            loss,
            0.047,
            covered,
            held,
            0.038 / 0.047,
            "loss",
        )
    ]
    calls: dict[str, Any] = {"likely": lambda: [_ours(series[:end]) for end in ORIGINS]}
    calls["statsmodels, ETS by AICc"] = lambda: [_statsmodels(series[:end]) for end in ORIGINS]
    if importlib.util.find_spec("statsforecast") is not None:
        calls["AutoARIMA"] = lambda: [_statsforecast("AutoARIMA", series[:end]) for end in ORIGINS]
        calls["AutoETS"] = lambda: [_statsforecast("AutoETS", series[:end]) for end in ORIGINS]
    timed = interleave(calls, repeats)
    targets = dict.fromkeys(calls, 0.1)
    return [*out, *compare(f"{name}, fit and 80% intervals", timed, lambda mine, other: ("", True), targets)]


def _ours(series: np.ndarray) -> Any:
    return Forecaster(season=12, random_state=0).fit(series).predict_interval(MONTHS, level=0.8)


def _statsmodels(series: np.ndarray) -> Any:
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    forms = [(error, trend, season) for error in ("add", "mul") for trend in (None, "add") for season in ("add", "mul")]
    fits = [
        ETSModel(series, error=e, trend=t, seasonal=s, seasonal_periods=12, damped_trend=t is not None).fit(disp=False)
        for e, t, s in forms
    ]
    return min(fits, key=lambda fit: float(fit.aicc)).forecast(MONTHS)


def _statsforecast(name: str, series: np.ndarray) -> Any:
    import statsforecast.models as models

    return getattr(models, name)(season_length=12).forecast(y=series, h=MONTHS, level=[80])


if __name__ == "__main__":
    show(run())
