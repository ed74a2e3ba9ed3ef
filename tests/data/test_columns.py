"""How each kind of column becomes numbers, by hand, and what the training rows did not show."""

from __future__ import annotations

import datetime as dt
import json
import math

import numpy as np
import polars as pl
import pytest

from likely.core.errors import DataError, SpecError
from likely.data.columns import Category, Constant, Date, Number, as_numbers, as_text, column_from_json, kind_of
from likely.data.frame import as_frame

COLUMNS = [
    Constant("c", value="NO"),
    Number("n", mean=3.0, centre=3.0, scale=2.0, gaps=True),
    Category("k", levels=("a", "b", "c"), reference="b", gaps=True),
    Date("d", first=10.0, centre=5.0, scale=5.0, cycles=("week",)),
]


def series(values, name="x"):
    return as_frame({name: values})[name]


def test_numbers_are_standardised_with_gaps_at_the_mean():
    encoded = COLUMNS[1].encode(series([1.0, None, 5.0]), "error")
    np.testing.assert_allclose(encoded, [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert COLUMNS[1].features == ["n", "n: missing"]


def test_categories_are_indicators_without_the_reference():
    encoded = COLUMNS[2].encode(series(["b", "a", None, "c"]), "error")
    np.testing.assert_array_equal(encoded, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert COLUMNS[2].features == ["k=a", "k=c", "k: missing"]


def test_dates_are_elapsed_days_and_waves():
    """Monday 1970-01-05 is day 4; day 11 is a Monday too, day 12 a seventh of a turn on."""
    day = [dt.date(1970, 1, 1) + dt.timedelta(days=n) for n in (11, 12)]
    encoded = COLUMNS[3].encode(series(day), "error")
    turn = 2 * math.pi / 7
    expected = [[(1 - 5) / 5, 0.0, 1.0], [(2 - 5) / 5, math.sin(turn), math.cos(turn)]]
    np.testing.assert_allclose(encoded, expected, atol=1e-12)


def test_a_constant_is_zero_whatever_comes():
    np.testing.assert_array_equal(COLUMNS[0].encode(series(["SE", None]), "error"), np.zeros((2, 1)))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
def test_columns_go_to_json_and_back(column):
    assert column_from_json(json.loads(json.dumps(column.to_json()))) == column


@pytest.mark.parametrize(
    ("column", "changes", "words"),
    [
        (Number("a"), {"name": 7}, r"Number\(name=7\): name must be text"),
        (Number("a"), {"gaps": "yes"}, "gaps must be True or False"),
        (Category("a", ("x", "y")), {"levels": ["x", 3]}, r"levels=\('x', 3\); they must be words"),
        (Category("a", ("x", "y")), {"levels": "xy"}, "levels='xy'; they must be words"),
        (Date("a", cycles=("year",)), {"cycles": ["moon"]}, r"cycles=\['moon'\]; known are year, week, day"),
    ],
)
def test_columns_of_a_file_are_of_the_kinds_they_should_be(column, changes, words):
    with pytest.raises(SpecError, match=words):
        column_from_json(column.to_json() | changes)
    assert column.summary()


def test_what_training_did_not_show_is_refused_or_ignored():
    plain, levels = Number("n"), Category("k", levels=("a", "b"), reference="a")
    with pytest.raises(DataError, match=r"Column 'n' has a missing value \(row 1, counted from 0\) and had none"):
        plain.encode(series([1.0, None]), "error")
    with pytest.raises(DataError, match="Column 'k' has a category that was not in training: 'z' at row 0"):
        levels.encode(series(["z"]), "error")
    with pytest.raises(DataError, match="Column 'n' was a number in training and is text now"):
        plain.encode(series(["a"]), "error")
    np.testing.assert_array_equal(plain.encode(series([1.0, None]), "ignore"), [[1.0], [0.0]])
    np.testing.assert_array_equal(levels.encode(series(["z"]), "ignore"), [[0.0]])


def test_kinds_numbers_and_text_of_columns():
    values = {"number": [1, 2], "boolean": [True], "category": ["a"], "date": [dt.date(2020, 1, 1)], "empty": [None]}
    assert {kind: kind_of(series(own)) for kind, own in values.items()} == {kind: kind for kind in values}
    assert as_numbers(series([dt.timedelta(hours=36)])).tolist() == [1.5]
    assert as_text(series([1.0, 0.1, None])).to_list() == ["1", "0.1", None]
    with pytest.raises(DataError, match="has an infinite value"):
        as_numbers(series([1.0, math.inf]))
    with pytest.raises(DataError, match="which has no encoding"):
        kind_of(as_frame(pl.DataFrame({"x": [[1, 2]]}))["x"])


def test_units_and_centres_lead_back_to_the_column():
    number = Number("x", mean=3.0, centre=3.0, scale=2.0)
    encoded = number.encode(series([1.0, 7.0]), "error")[:, 0]
    np.testing.assert_allclose(number.centres[0] + number.units[0] * encoded, [1.0, 7.0])
    assert [column.centres for column in COLUMNS] == [[0.0], [3.0, 0.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]
    assert Number("x", centre=3.0, scale=0.0).centres == [0.0]  # it is 0 whatever comes
