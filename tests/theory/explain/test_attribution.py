"""Attributions as tables and sums."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.theory.explain.attribution import Attribution

VALUES = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.5]])


def made(values=VALUES, **more):
    return Attribution(values, "saliency", "mean", None, np.array([3.0, 4.0]), **more)


def test_the_gap_is_what_the_values_do_not_tell():
    np.testing.assert_allclose(made(baseline=np.array([3.0, 2.0])).gap, [-0.5 - 0.0, 1.5 - 2.0])
    assert made().gap is None


def test_importance_is_the_mean_size():
    np.testing.assert_allclose(made().importance(), [0.5, 2.5, 1.0])
    images = made(VALUES.reshape(2, 1, 3, 1))
    assert images.importance().shape == (1, 3, 1)


def test_a_frame_has_a_line_for_each_row_and_column():
    frame = made(X=10 * VALUES, standard_error=np.abs(VALUES), names=("a", "b", "c")).to_frame()
    assert frame["row"].to_list() == [0, 0, 0, 1, 1, 1]
    assert frame["input"].to_list() == ["a", "b", "c"] * 2
    np.testing.assert_array_equal(frame["value"], 10 * VALUES.ravel())
    np.testing.assert_array_equal(frame["attribution"], VALUES.ravel())
    np.testing.assert_array_equal(frame["standard_error"], np.abs(VALUES).ravel())
    assert made().to_frame()["value"].is_nan().all()


def test_columns_are_named_by_those_given_then_by_the_table_then_by_number():
    table = made(names=("a", "b", "c"))
    assert table.column_names(["p", "q", "r"]) == ("p", "q", "r")
    assert table.column_names() == ("a", "b", "c")
    assert made().column_names() == ("x0", "x1", "x2")
    with pytest.raises(DataError, match="names has 2 entries; there are 3 columns"):
        table.column_names(["p", "q"])
    with pytest.raises(DataError, match="only those of tables go to a frame"):
        made(VALUES.reshape(2, 1, 3, 1)).to_frame()


def test_it_says_what_it_is():
    assert str(made()) == "saliency: 2 rows of 3 columns"
    assert str(made(VALUES.reshape(2, 1, 3, 1))) == "saliency: 2 rows of shape (1, 3, 1)"
    told = str(made(baseline=np.array([3.5, 2.5])))
    assert told == "saliency: 2 rows of 3 columns; they sum to mean − mean at the baseline, to 0"
    assert len(made()) == 2
