"""Targets and weights of a table, and which task a target suggests."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pytest

from likely.core.errors import DataError
from likely.data.frame import as_frame
from likely.data.target import is_missing, labels_of, numbers_of, task_of, weights_of


def series(values):
    return as_frame({"y": values})["y"]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "classify"),
        ([True, False], "classify"),
        ([0, 1, 2], "classify"),
        ([1, 2, 3, 4, 5], "classify"),
        ([0, 2, 3], "regress"),
        ([0, 1, 2, 3, 4, 5], "regress"),
        ([0.0, 1.0], "regress"),
        ([10, 20], "regress"),
    ],
)
def test_the_task_of_a_target(values, task):
    assert task_of(series(values))[0] == task


def test_missing_values_are_gaps_and_nan():
    assert is_missing(series([1.0, None, math.nan])).tolist() == [False, True, True]
    assert is_missing(series(["a", None])).tolist() == [False, True]


def test_numbers_and_labels_in_the_rows_to_keep():
    keep = np.array([True, False, True])
    assert numbers_of(series([1, 2, 3]), keep).tolist() == [1.0, 3.0]
    assert labels_of(series([1.0, math.nan, 3.0]), keep).tolist() == [1, 3]
    assert labels_of(series(["a", None, "b"]), keep).tolist() == ["a", "b"]
    assert labels_of(series([True, None, False]), keep).dtype == bool


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: numbers_of(series(["cheap"])), "holds text .*'cheap'.*; a regression needs numbers"),
        (lambda: numbers_of(series([dt.date(2020, 1, 1)])), "holds dates"),
        (
            lambda: labels_of(series([1.0, 2.5]), np.array([True, True])),
            r"has the number 2\.5 \(row 1, counted from 0\)",
        ),
        (lambda: labels_of(series([dt.date(2020, 1, 1)]), np.array([True])), "a classification needs labels"),
        (lambda: task_of(series([None, None])), "has no value in any row"),
    ],
)
def test_targets_that_will_not_do_are_told(ask, text):
    with pytest.raises(DataError, match=text):
        ask()


def test_weights_are_an_array_or_a_column():
    frame = as_frame({"w": [1, 0, 2], "bad": [1.0, -1.0, 2.0], "text": ["a", "b", "c"]})
    assert weights_of(frame, None) is None
    assert weights_of(frame, "w").tolist() == weights_of(frame, [1, 0, 2]).tolist() == [1.0, 0.0, 2.0]
    for given, text in (
        ("bad", "a negative value .row 1"),
        ("text", "must hold numbers"),
        ([1.0], "the table has 3 rows"),
    ):
        with pytest.raises(DataError, match=text):
            weights_of(frame, given)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ReadingNote")
def test_a_typo_among_numbers_is_told_with_its_row():
    with pytest.raises(
        DataError, match=r"Target column 'y' holds text \('5S' at row 4, counted from 0\); a regression"
    ):
        numbers_of(series([*"1234", "5S"]))
