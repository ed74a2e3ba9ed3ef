"""The form of rows: tables and arrays become tensors and come back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import BaseEstimator

from likely.core.errors import DataError, ModelFileError
from likely.models.generative.rows import RowForm

TABLE = pl.DataFrame({"size": [1.5, None, 3.0], "colour": ["red", "blue", None], "sold": [True, False, True]})


@pytest.mark.parametrize("table", [TABLE, pd.DataFrame(TABLE.to_dict(as_series=False))])
def test_a_table_comes_back_as_it_was(table):
    form, x = RowForm.read(BaseEstimator(), table)
    assert x.shape == (3, 3)
    assert bool(x.isnan()[1, 0])
    assert bool(x.isnan()[2, 1])
    again = form.given(x)
    assert isinstance(again, type(table))
    assert list(again["colour"])[:2] == ["red", "blue"]
    assert list(again["sold"]) == [True, False, True]


def test_images_keep_their_shape():
    images = np.zeros((5, 3, 4, 4))
    form, x = RowForm.read(BaseEstimator(), images)
    assert form.shape == (3, 4, 4)
    np.testing.assert_array_equal(form.given(x), images)


def test_fixed_columns_leave_the_rest_free():
    form, _ = RowForm.read(BaseEstimator(), TABLE)
    x = form.fixed({"colour": "red"}, 4)
    assert x[:, 1].tolist() == [1.0] * 4
    assert bool(x[:, [0, 2]].isnan().all())
    several = form.fixed({"colour": ["red", "blue"], "size": 2.0}, 2)
    assert several[:, 0].tolist() == [2.0, 2.0]
    array, _ = RowForm.read(BaseEstimator(), np.zeros((3, 2)))
    np.testing.assert_array_equal(array.fixed([np.nan, 1.0], 2), [[np.nan, 1.0]] * 2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: f.fixed({"weight": 1.0}, 2), "condition has a column 'weight'; the model has size, colour, sold"),
        (lambda f: f.fixed({"size": [1.0, 2.0]}, 3), "condition has 2 rows; it must have 1, or n = 3"),
        (lambda f: f.rows(None, np.zeros((2, 3))), "X is not a table; the model was fitted on one"),
        (lambda f: f.rows(None, pd.DataFrame({"size": [1.0]})), "colour"),
    ],
)
def test_what_does_not_fit_is_named(ask, message):
    form, _ = RowForm.read(BaseEstimator(), TABLE)
    with pytest.raises(DataError, match=message):
        ask(form)


def test_a_file_describes_the_form():
    form, _ = RowForm.read(BaseEstimator(), TABLE)
    assert RowForm.from_json(form.to_json()) == form
    for change in ({"shape": [4]}, {"shape": [-3]}, {"kind": "array"}, {"kind": "list"}):
        with pytest.raises(ModelFileError, match="rows of shape"):
            RowForm.from_json(form.to_json() | change)
    assert torch.is_tensor(form.rows(None, TABLE))


def test_draws_are_numbers_that_a_column_was_recorded_in():
    """The nearest one; columns whose numbers hardly repeat, and labels, stay as they are."""
    frame = {"rate": [1 / 3, 0.7, 1 / 3, 0.7], "size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "b"]}
    form, _ = RowForm.read(None, frame)
    new = form.as_recorded(torch.tensor([[0.5, 2.2, 1.0], [0.53, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 1.5, 1.0]]))
    assert new[:, 0].tolist() == [1 / 3, 0.7, 0.7, 1 / 3]
    torch.testing.assert_close(new[:, 1:], torch.tensor([[2.2, 1], [-9, 0], [9, 0], [1.5, 1]]).double())
    assert RowForm.from_json(form.to_json()) == form
    one, _ = RowForm.read(None, {"constant": [3.0] * 4})
    assert one.as_recorded(torch.tensor([[2.0], [4.0]])).tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize("recorded", [[[2.0, 1.0]], [["a"]], [[], []]])
def test_recorded_numbers_of_a_file_fit_its_columns(recorded):
    form, _ = RowForm.read(None, {"rate": [0.5, 0.7, 0.5, 0.7]})
    with pytest.raises(ModelFileError, match="recorded numbers that do not fit its columns"):
        RowForm.from_json(form.to_json() | {"recorded": recorded})
