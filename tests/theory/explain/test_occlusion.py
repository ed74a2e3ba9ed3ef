"""What is lost where a part is covered: of arrays, of frames as they are, and of the pixels of an answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from likely import Classifier, Regressor, TableModel
from likely.core.errors import DataError, SpecError
from likely.data import Table
from likely.inference import MAP
from likely.networks import UNet
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


@pytest.mark.parametrize("model", [LogisticRegression(), Classifier(prior="normal(1.0)")])
def test_a_model_of_named_columns_is_asked_by_name(model):
    """It gets the frame and no bare array, of which scikit-learn would warn (warnings are errors here)."""
    frame = pd.DataFrame({"area": AREA - 60, "rooms": ROOMS})
    fitted = model.fit(frame, PRICE > 250)
    lost = occlusion(fitted, frame, True, baseline=frame.mean())
    line = np.asarray(fitted.coef_, dtype=float).reshape(-1, 2)[-1]
    np.testing.assert_allclose(lost.values, line * (frame - frame.mean()), rtol=1e-3, atol=1e-5)
    assert lost.names == ("area", "rooms")


def test_the_pixels_of_an_answer_are_chosen():
    """Of one pixel nothing is lost where it does not see; a region is the mean over its pixels."""
    X = np.random.default_rng(0).normal(size=(8, 1, 8, 8)).astype(np.float32)
    model = Classifier(network=UNet((4,)), inference=MAP(epochs=3), random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    rows = X[:2]
    one, other = (occlusion(model, rows, 1, window=1, stride=1, at=at).values for at in ((1, 1), (6, 6)))
    assert one.shape == (2, 1, 8, 8)
    np.testing.assert_allclose(one[:, 0, 6:, 6:], 0, atol=1e-5)
    assert np.abs(one[:, 0, 1, 1]).min() > 1e-3
    mask = np.zeros((8, 8), bool)
    mask[1, 1] = mask[6, 6] = True
    both = occlusion(model, rows, 1, window=1, stride=1, at=mask).values
    np.testing.assert_allclose(both, (one + other) / 2, atol=1e-4)
    numbers = Regressor(network=UNet((4,)), inference=MAP(epochs=3), random_state=0).fit(X, X[:, 0])
    np.testing.assert_allclose(occlusion(numbers, rows, at=(3, 4)).output, numbers.predict(rows)[:, 3, 4], rtol=1e-5)
    with pytest.raises(DataError, match=r"labels at positions \(8, 8\); say which of them are explained: at=\(row"):
        occlusion(model, rows)
    with pytest.raises(DataError, match=r"at=\(8, 0\) must be a position inside \(8, 8\)"):
        occlusion(model, rows, at=(8, 0))


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
