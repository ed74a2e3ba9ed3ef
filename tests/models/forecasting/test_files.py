from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch

import likely
from likely import Forecaster
from likely.core.errors import ModelFileError
from likely.core.files import read_file, write_file
from likely.models.forecasting import ExponentialSmoothing

WALK = np.random.default_rng(0).normal(size=60).cumsum()


def test_a_file_brings_back_dates_and_forecasts(tmp_path):
    frame = pl.DataFrame({"day": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 2, 29), eager=True), "y": WALK})
    model = Forecaster(date="day", covariates="calendar", lags=2, random_state=0).fit(frame)
    model.save(tmp_path / "m")
    loaded = likely.load(tmp_path / "m")
    assert loaded.predict_frame(3).equals(model.predict_frame(3))
    np.testing.assert_array_equal(loaded.log_prob(frame), model.log_prob(frame))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("values", lambda value: value[:-1]),
        ("values", lambda value: value * torch.inf),
        ("lengths", lambda value: value + 1),
        ("units", lambda value: -value),
        ("numbers", lambda value: value[:2]),
        ("numbers", lambda value: value - 2),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path, name, change):
    path = tmp_path / "m"
    Forecaster(network=ExponentialSmoothing(), season=4, random_state=0).fit(WALK).save(path)
    header, tensors = read_file(path)
    write_file(path, header, tensors | {name: change(tensors[name])})
    with pytest.raises(ModelFileError):
        likely.load(path)
