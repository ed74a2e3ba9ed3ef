from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import Forecaster
from likely.core.errors import DataError
from likely.models.forecasting.places import places_of, units_of

WALK = np.random.default_rng(0).normal(size=60).cumsum()


def test_units_leave_what_does_not_vary():
    location, scale = units_of(np.column_stack([np.full(4, 3.0), np.arange(4.0)]))
    assert location.tolist() == [3.0, 1.5]
    assert scale[0] == 1.0


def test_gaps_at_the_end_are_steps_to_look_over():
    model = Forecaster(lags=2, transform="none").fit(WALK)
    holes = np.append(WALK, [np.nan, np.nan])
    places = places_of(model, model._read(holes), None, 3, None)
    assert places.total == 5
    assert places.which.tolist() == [[2, 3, 4]]
    np.testing.assert_allclose(model.predict(3, series=holes), model.predict(5, series=WALK)[2:], rtol=1e-9)


def test_a_past_shorter_than_the_lags_is_refused():
    model = Forecaster(lags=5, transform="none").fit(WALK)
    with pytest.raises(DataError, match="has 3 values before the forecast, and the model looks back 5 steps"):
        model.predict(1, series=WALK[:3])


@pytest.mark.parametrize("library", [pl, pd])
def test_a_table_goes_on_with_its_dates_and_names(library):
    months = [dt.date(2020 + k // 12, k % 12 + 1, 1) for k in range(60)]
    frame = library.DataFrame({"month": months, "sales": WALK + 50})
    if library is pd:
        frame["month"] = pd.to_datetime(frame["month"])
    table = Forecaster(lags=2, date="month", target="sales").fit(frame).predict_frame(3, level=0.8)
    assert isinstance(table, library.DataFrame)
    assert list(table.columns) == ["month", "sales", "sales_lower", "sales_upper"]
    assert str(table["month"][0])[:10] == "2025-01-01"
    assert (np.asarray(table["sales_lower"]) < np.asarray(table["sales_upper"])).all()
