"""Rows with a part covered: of frames as they are, by a number, a row or a row for each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from likely import Classifier, Regressor, TableModel
from likely.core.errors import DataError, SpecError
from likely.data import Table
from likely.theory.explain import occlusion

FRAMES = [pd.DataFrame, pl.DataFrame]


AREA, ROOMS = np.array([50.0, 80.0, 65.0, 90.0, 40.0, 70.0]), np.array([1, 2, 3, 4, 5, 7])


CITY = np.array(["Oslo", "Bergen", "Oslo", "Bergen", "Bergen", "Oslo"])


PRICE = 2 * AREA + 3 * ROOMS + 100 * (CITY == "Oslo")


@pytest.fixture(params=FRAMES, ids=["pandas", "polars"])
def homes(request):
    """A frame without its target, and a model that knows the line in it."""
    frame = request.param({"area": AREA, "rooms": ROOMS, "city": CITY.tolist(), "price": PRICE})
    return frame[["area", "rooms", "city"]], TableModel(Regressor(), "price", Table()).fit(frame)


def test_columns_of_a_frame_are_covered_as_they_are(homes):
    """Of a line each column loses its own part; a dict, a frame of one row and one for each row are baselines."""
    frame, model = homes
    lost = occlusion(model, frame[:2], baseline={"area": 60.0, "rooms": 2.5, "city": "Bergen"})
    np.testing.assert_allclose(lost.values, [[-20, -4.5, 100], [40, -1.5, 0]], rtol=1e-4, atol=1e-3)
    assert lost.names == ("area", "rooms", "city")
    np.testing.assert_allclose(lost.output, PRICE[:2], rtol=1e-5)
    one = occlusion(model, frame[:2], baseline=frame[3:4])
    np.testing.assert_allclose(one.values, [[-80, -9, 100], [-20, -6, 0]], rtol=1e-4, atol=1e-3)
    each = occlusion(model, frame[:2], baseline=frame[2:4])
    np.testing.assert_allclose(each.values, [[-30, -6, 0], [-20, -6, 0]], rtol=1e-4, atol=1e-3)
    pairs = occlusion(model, frame[:1], window=2, stride=1, baseline=frame[3:4])
    np.testing.assert_allclose(pairs.values, [[-89, (-89 + 91) / 2, 91]], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_numbers_is_covered_by_a_number_or_by_its_means(kind):
    frame = kind({"area": AREA, "rooms": ROOMS, "price": 2 * AREA + 3 * ROOMS})
    model = TableModel(Regressor(), "price", Table()).fit(frame)
    rows = frame[["area", "rooms"]]
    np.testing.assert_allclose(occlusion(model, rows).values, np.column_stack([2 * AREA, 3 * ROOMS]), rtol=1e-5)
    expected = np.column_stack([2 * (AREA - AREA.mean()), 3 * (ROOMS - ROOMS.mean())])
    for baseline in (rows.mean(), [AREA.mean(), ROOMS.mean()]):
        np.testing.assert_allclose(occlusion(model, rows, baseline=baseline).values, expected, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_covered_is_named(homes):
    frame, model = homes
    with pytest.raises(
        DataError, match=r"not numbers \('city'\), and the baseline is 0\.0; give a value for each column"
    ):
        occlusion(model, frame)
    with pytest.raises(DataError, match="baseline has no column 'city', which X has"):
        occlusion(model, frame, baseline={"area": 1.0, "rooms": 1})
    with pytest.raises(DataError, match="baseline has 3 rows; one is needed, or one for each of 2"):
        occlusion(model, frame[:2], baseline=frame[:3])
    for column, kind in (("area", "Float64"), ("rooms", "Int64")):
        with pytest.raises(DataError, match=f"baseline has 'x' for column '{column}', which holds {kind}"):
            occlusion(model, frame, baseline={"area": 1.0, "rooms": 1, "city": "Oslo"} | {column: "x"})
    with pytest.raises(DataError, match="X is not an array of numbers"):
        occlusion(model, [["a", "b"]])
    with pytest.raises(SpecError, match="at is for models that answer at positions, such as pixels; this TableModel"):
        occlusion(model, frame, baseline=frame[:1], at=(1, 1))


@pytest.mark.parametrize("model", [LogisticRegression(), Classifier(prior="normal(1.0)")])
def test_a_model_of_named_columns_is_asked_by_name(model):
    """It gets the frame and no bare array, of which scikit-learn would warn (warnings are errors here)."""
    frame = pd.DataFrame({"area": AREA - 60, "rooms": ROOMS})
    fitted = model.fit(frame, PRICE > 250)
    lost = occlusion(fitted, frame, True, baseline=frame.mean())
    line = np.asarray(fitted.coef_, dtype=float).reshape(-1, 2)[-1]
    np.testing.assert_allclose(lost.values, line * (frame - frame.mean()), rtol=1e-3, atol=1e-5)
    assert lost.names == ("area", "rooms")
