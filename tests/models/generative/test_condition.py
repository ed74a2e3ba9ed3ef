"""Conditions: labels one-hot, numbers in units, tables of both."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely.core.errors import DataError, ModelFileError
from likely.models.generative.condition import ConditionForm

IMAGES = np.random.default_rng(0).normal(5.0, 2.0, (20, 2, 3, 3))
FORMS = [["b", "a", None, "b"], [1, 0, 2, 1], [True, False], [0.5, 1.5, 9.0], np.arange(12.0).reshape(4, 3), IMAGES]


@pytest.mark.parametrize("given", [*FORMS, pl.DataFrame({"n": [1.0, 2.0, 4.0], "t": ["x", None, "y"]})])
def test_a_file_describes_the_form(given):
    form = ConditionForm.of(given)
    again = ConditionForm.from_json(form.to_json())
    assert again == form
    assert again.encode(given).shape == (len(given), *form.shape)
    with pytest.raises(ModelFileError, match="does not fit itself"):
        ConditionForm.from_json(form.to_json() | {"scale": [-1.0], "centre": [0.0], "labels": []})


def test_labels_are_one_hot_and_missing_ones_zero():
    form = ConditionForm.of(["b", "a", None, "b"])
    assert form.encode(["a", None]).tolist() == [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("given", FORMS[3:])
def test_numbers_are_standardised(given):
    encoded = ConditionForm.of(given).encode(given).numpy()
    axes = (0, 2, 3) if encoded.ndim == 4 else 0
    np.testing.assert_allclose(encoded.mean(axes), 0.0, atol=1e-9)
    np.testing.assert_allclose(encoded.std(axes), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        (["a", "b"], None, "condition is missing"),
        (["a", "b"], ["c"], "condition has 'c' at row 0, which training did not show; known: 'a', 'b'"),
        (["a", "b"], [["a"]], "one label per row"),
        ([1.0, 2.5], [[1.0]], r"rows of shape \(1,\); the model was fitted on \(\)"),
        ([1.0, 2.5], [float("nan")], "condition has NaN at row 0"),
        ([1.0, 2.5], [float("inf")], "condition contains infinity"),
        ({"n": [1.0, 2.0]}, {"n": [None, 1.0]}, "gap in column 'n' at row 0"),
    ],
)
def test_what_does_not_fit_is_named(fitted, given, message):
    form = ConditionForm.of(fitted)
    with pytest.raises(DataError, match=message):
        form.encode(given)


def test_labels_of_several_kinds_are_refused():
    with pytest.raises(DataError, match="labels of several kinds"):
        ConditionForm.of(np.array(["a", 1], dtype=object))
