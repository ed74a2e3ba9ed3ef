"""Columns that are exchanged one by one: in arrays, and in frames as they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import Regressor, TableModel
from likely.core.errors import DataError
from likely.data import Table
from likely.theory.explain import shapley
from likely.theory.explain.columns import Columns


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_frames_are_mixed_as_they_are(kind):
    area = np.array([50.0, 80.0, 65.0, 90.0, 40.0, 70.0])
    city = ["Oslo", "Bergen", "Oslo", "Bergen", "Bergen", "Oslo"]
    price = 2 * area + np.where(np.array(city) == "Oslo", 100.0, 0.0)
    frame = kind({"area": area, "city": city, "price": price})
    model = TableModel(Regressor(), "price", Table()).fit(frame)
    given = frame[["area", "city"]]
    shares = shapley(model, given[:2], given)
    assert shares.names == ("area", "city")
    np.testing.assert_allclose(shares.values[:, 0], 2 * (area[:2] - area.mean()), rtol=1e-5)
    np.testing.assert_allclose(shares.values[:, 1], [50.0, -50.0], rtol=1e-5)
    assert shares.to_frame()["input"].to_list() == ["area", "city"] * 2


FORMS = [
    np.asarray,
    lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"]),
    lambda rows: pl.DataFrame(rows, ["a", "b", "c"]),
]


@pytest.mark.parametrize("form", FORMS, ids=["array", "pandas", "polars"])
def test_every_column_comes_from_its_own_row(form):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 3))
    table = Columns.of(form(rows), "X")
    index = rng.integers(0, 5, size=(7, 3))
    np.testing.assert_array_equal(np.asarray(table.mix(index)), np.take_along_axis(rows, index, 0))
    np.testing.assert_array_equal(table.take(np.array([3, 3, 0])).numbers(), rows[[3, 3, 0]])
    np.testing.assert_array_equal(table.before(table.take(np.array([1]))).numbers(), np.vstack([rows, rows[[1]]]))
    assert (len(table), table.width) == (5, 3)


def test_text_has_no_numbers():
    assert Columns.of({"area": [50.0], "city": ["Oslo"]}, "X").numbers() is None


def test_what_is_no_table_is_refused():
    with pytest.raises(DataError, match=r"background has shape \(2,\) of .*; a table \(n, columns\) of numbers"):
        Columns.of([1.0, 2.0], "background")
    with pytest.raises(DataError, match="X has no rows"):
        Columns.of(pd.DataFrame({"a": []}), "X")
