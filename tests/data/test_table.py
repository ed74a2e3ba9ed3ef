"""The encoding of tables: what is learned comes from training rows, what cannot be represented is refused."""

from __future__ import annotations

import datetime as dt
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likely.core.errors import DataError, ModelFileError, ReadingNote, SpecError
from likely.core.estimator import load_estimator
from likely.data import Table

ROWS = {
    "area": [40.0, 60.0, 80.0, 100.0],
    "rooms": [1, 2, 3, 3],
    "city": ["Oslo", "Oslo", "Bergen", "Voss"],
    "garden": [True, False, False, True],
    "sold": [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(2020, 3, 1), dt.date(2020, 5, 1)],
}
KINDS = [dict, pl.DataFrame, pd.DataFrame]


def test_numbers_equal_scikit_learn():
    values = np.random.default_rng(0).normal(50, 9, (200, 3)) ** 3
    frame = pl.DataFrame(values, schema=["a", "b", "c"])
    ours = Table().fit(frame[:150]).transform(frame)
    theirs = StandardScaler().fit(values[:150]).transform(values)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reference", [True, False])
def test_categories_equal_scikit_learn(reference):
    values = np.random.default_rng(0).choice(["red", "green", "blue"], (90, 1), p=[0.2, 0.3, 0.5])
    ours = Table(reference=reference).fit({"colour": values[:, 0]})
    theirs = OneHotEncoder(drop=["blue"] if reference else None, sparse_output=False).fit(values)
    np.testing.assert_array_equal(ours.transform({"colour": values[:, 0]}), theirs.transform(values))
    assert ours.feature_names_ == [f"colour={level}" for level in ("blue", "green", "red")[int(reference) :]]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_gives_the_same_numbers(kind):
    expected = Table().fit(ROWS).transform(ROWS)
    table = Table().fit(kind(ROWS))
    assert table.transform(kind(ROWS)).dtype == np.float32
    np.testing.assert_array_equal(table.transform(kind(ROWS)), expected)
    np.testing.assert_array_equal(Table().fit(ROWS).transform(kind(ROWS)), expected)


def test_columns_are_matched_by_name_and_others_are_not_looked_at():
    table = Table().fit(ROWS)
    shuffled = {name: ROWS[name] for name in reversed(ROWS)}
    np.testing.assert_array_equal(table.transform(shuffled), table.transform(ROWS))
    np.testing.assert_array_equal(table.transform(shuffled | {"note": list("abcd")}), table.transform(ROWS))


def test_each_row_is_encoded_on_its_own():
    table = Table().fit(ROWS)
    whole = table.transform(ROWS)
    for i in range(4):
        np.testing.assert_array_equal(table.transform({k: v[i : i + 1] for k, v in ROWS.items()})[0], whole[i])


def test_constant_columns_become_zero_and_are_reported():
    table = Table().fit({"x": [1, 2], "n": [3, 3], "s": ["a", "a"], "b": [True, True], "e": [None, None]})
    assert table.constant_ == ["n", "s", "b", "e"]
    np.testing.assert_array_equal(table.transform({"x": [1], "n": [7], "s": ["z"], "b": [False], "e": [1]})[0, 1:], 0)
    assert "0, since every training row has 3" in table.describe()


@pytest.mark.parametrize("missing", [None, math.nan])
def test_missing_numbers_are_the_mean_beside_an_indicator(missing):
    frame = pd.DataFrame({"x": [1.0, 3.0, missing]})
    table = Table().fit(frame)
    assert table.feature_names_ == ["x", "x: missing"]
    np.testing.assert_allclose(table.transform(frame), [[-1, 0], [1, 0], [0, 1]])
    np.testing.assert_allclose(Table(standardize=False).fit_transform(frame), [[1, 0], [3, 0], [2, 1]])


def test_missing_categories_are_a_level():
    frame = {"s": ["a", "a", "b", None]}
    table = Table().fit(frame)
    assert table.feature_names_ == ["s=b", "s: missing"]
    np.testing.assert_array_equal(table.transform(frame), [[0, 0], [0, 0], [1, 0], [0, 1]])


def test_missing_booleans_and_dates():
    frame = {"b": [True, False, None, True], "d": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 3), dt.date(2020, 1, 5)]}
    out = Table(standardize=False).fit_transform(frame)
    np.testing.assert_allclose(out, [[1, 0, 0, 0], [0, 0, 2, 1], [2 / 3, 1, 2, 0], [1, 0, 4, 0]], rtol=1e-6)


@pytest.mark.parametrize("column", ["area", "city", "garden", "sold"])
def test_a_gap_that_training_did_not_show_is_refused(column):
    frame = ROWS | {column: [ROWS[column][0], None, None, ROWS[column][3]]}
    table = Table().fit(ROWS)
    with pytest.raises(DataError, match=rf"Column '{column}' has a missing value \(row 1 and 1 more, counted from 0\)"):
        table.transform(frame)
    assert np.isfinite(table.set_params(unseen="ignore").transform(frame)).all()


def test_an_unseen_category_is_refused_or_ignored():
    table = Table().fit(ROWS)
    frame = ROWS | {"city": ["Oslo", "Rome", "Rome", "Voss"]}
    with pytest.raises(DataError, match=r"Column 'city' .* 'Rome' at row 1 and 1 row more .* known: Bergen, Oslo"):
        table.transform(frame)
    ignoring = Table(unseen="ignore").fit(ROWS)
    oslo = ignoring.transform(ROWS | {"city": ["Oslo"] * 4})
    np.testing.assert_array_equal(ignoring.transform(frame)[1], oslo[1])


def test_dates_are_days_and_cycles():
    days = [dt.date(2019, 1, 1) + dt.timedelta(days=i) for i in range(800)]
    table = Table(standardize=False).fit({"day": days})
    assert table.feature_names_ == ["day", *(f"day: {c} {w}" for c in ("year", "week") for w in ("sine", "cosine"))]
    out = table.transform({"day": days})
    np.testing.assert_array_equal(out[:, 0], np.arange(800))
    np.testing.assert_allclose(out[:, 1] ** 2 + out[:, 2] ** 2, 1, rtol=1e-5)
    np.testing.assert_allclose(out[7:, 3:], out[:-7, 3:], atol=1e-5)  # a week later is the same weekday
    first_of_january = [i for i, day in enumerate(days) if (day.month, day.day) == (1, 1)]
    np.testing.assert_allclose(out[first_of_january, 1:3], [[0, 1]] * 3, atol=1e-6)


def test_hours_count_where_they_vary():
    times = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=i) for i in range(72)]
    table = Table(standardize=False).fit({"time": times})
    assert table.feature_names_ == ["time", "time: day sine", "time: day cosine"]
    np.testing.assert_allclose(table.transform({"time": times})[6], [0.25, 1, 0], atol=1e-6)


def test_time_zones_name_one_moment_and_must_not_come_and_go():
    utc = pl.Series([dt.datetime(2020, 1, i, 12) for i in range(1, 9)]).dt.replace_time_zone("UTC")
    table = Table().fit({"t": utc})
    elsewhere = utc.dt.convert_time_zone("Asia/Tokyo")
    np.testing.assert_array_equal(table.transform({"t": elsewhere}), table.transform({"t": utc}))
    with pytest.raises(DataError, match="Column 't' has dates without a time zone, and training had them with"):
        table.transform({"t": utc.dt.replace_time_zone(None)})


def test_durations_are_days():
    out = Table(standardize=False).fit_transform({"wait": [dt.timedelta(days=1), dt.timedelta(hours=12)]})
    np.testing.assert_allclose(out[:, 0], [1, 0.5])


def test_numbers_as_categories():
    table = Table(categories=["zip"]).fit({"zip": [10, 20, 10, 30]})
    assert table.feature_names_ == ["zip=20", "zip=30"]
    np.testing.assert_array_equal(table.transform({"zip": [20.0, 10.0]}), [[1, 0], [0, 0]])  # whole floats are the same
    np.testing.assert_array_equal(table.transform({"zip": ["30"]}), [[0, 1]])


def test_text_stays_a_category_when_a_file_with_few_rows_reads_as_numbers():
    table = Table().fit({"code": ["7", "8", "A1", "7"]})
    np.testing.assert_array_equal(table.transform({"code": [8]}), table.transform({"code": ["8"]}))


def test_ignored_columns_are_left_out():
    table = Table(ignore=["city", "sold"]).fit(ROWS)
    assert [column.name for column in table.columns_] == ["area", "rooms", "garden"]
    table.transform({name: ROWS[name] for name in ("area", "rooms", "garden")})


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"id": [f"n{i}" for i in range(30)]}, r"Column 'id' is text with 30 .* identifier.*Table\(ignore=\['id'\]\)"),
        (
            {"review": [f"the {i} was not good" for i in range(30)]},
            r"Column 'review' is text .* words and no other column \(table=TextColumn\('review'\).* --text review",
        ),
        ({"s": [str(i % 60) + "x" for i in range(200)]}, "Column 's' is text with 60 .* max_categories=50.* raise"),
        ({"p": [f"{i}.5" for i in range(60)]}, "Column 'p' .* make it numbers"),
        ({"x": [1.0, math.inf, 2.0]}, r"Column 'x' has an infinite value \(inf at row 1"),
        ({"x": [1e308, -1e308, 1e308]}, "Column 'x' has values too large"),
        ({"x": [[1], [2]]}, "Column 'x' has type List"),
        ({"x": [1.0]}, "has 1 row; at least 2"),
        ({"x": []}, "has 0 rows"),
        ({}, "no column to learn from"),
        ({"a": ["b", "c"], "a=c": [1, 2]}, "both give a number named 'a=c'"),
    ],
)
def test_what_cannot_be_learned(frame, message):
    with pytest.raises(DataError, match=message):
        Table().fit(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"area": None}, "has no column 'area'"),
        ({"area": None, "city": None}, "lacks 2 columns that training had: 'area', 'city'"),
        ({"area": ["big"] * 4}, r"'area' was a number in training and is text now: 'big' at row 0, .*4 of 4"),
        ({"sold": ["2020"] * 4}, "Column 'sold' was a date in training and is text now"),
        ({"area": [1.0, 2.0, 3.0, -math.inf]}, "Column 'area' has an infinite value"),
        ({"area": [1.0, 2.0, 1e300, 3.0]}, "Column 'area' has a value too far .*row 2"),
    ],
)
def test_what_cannot_be_transformed(change, message):
    frame = {name: change.get(name, values) for name, values in ROWS.items() if change.get(name, values) is not None}
    with pytest.raises(DataError, match=message):
        Table().fit(ROWS).transform(frame)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"unseen": "skip"}, SpecError, 'unseen must be "error" or "ignore"'),
        ({"max_categories": 1}, SpecError, "max_categories must be 2 or more"),
        ({"ignore": "city"}, SpecError, "ignore must be a list of column names"),
        ({"ignore": ["town"]}, DataError, "no column 'town'"),
        ({"categories": ["room"]}, DataError, "no column 'room'. Did you mean 'rooms'"),
    ],
)
def test_arguments_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        Table(**arguments).fit(ROWS)


def test_before_fit_there_is_no_encoding():
    with pytest.raises(NotFittedError):
        Table().transform(ROWS)


def test_saved_and_loaded_it_encodes_the_same(tmp_path):
    frame = ROWS | {"gap": [1.0, None, 2.0, 3.0], "same": [1, 1, 1, 1]}
    table = Table(categories=("rooms",)).fit(frame)
    json.dumps(table._state()[0])
    table.save(tmp_path / "table.likely")
    loaded = load_estimator(tmp_path / "table.likely")
    np.testing.assert_array_equal(loaded.transform(frame), table.transform(frame))
    assert loaded.describe() == table.describe()
    assert loaded.get_params() == table.get_params()


def test_a_file_with_another_encoding_is_refused(tmp_path):
    table = Table().fit(ROWS)
    table._state = lambda: ({"columns": [{"kind": "secret", "name": "x"}]}, {})
    table.save(tmp_path / "table.likely")
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load_estimator(tmp_path / "table.likely")


def test_it_is_a_scikit_learn_transformer():
    table = clone(Table(ignore=("city",))).set_output(transform="pandas")
    out = table.fit_transform(pd.DataFrame(ROWS))
    assert list(out.columns) == list(table.get_feature_names_out())


def test_the_summary_names_every_column():
    lines = Table().fit(ROWS | {"gap": [1.0, None, 2.0, 3.0]}).describe().splitlines()
    assert lines[0] == "6 columns become 10 numbers"
    assert [line.split()[0] for line in lines[1:]] == [*ROWS, "gap"]
    assert "days since 2020-01-01" in lines[5]
    assert "missing: the mean, 2, and 1 in a column of its own" in lines[6]


@pytest.mark.parametrize("name", ["id", "customer_id", "CustomerID", "customerId", "row-nr", "index"])
def test_integers_that_look_like_an_identifier_are_noted(name):
    frame = {name: range(100, 130), "area": [1.0, 2.0, 4.0] * 10}
    with pytest.warns(ReadingNote, match=f"`{name}` has another integer in each row.*ignore=.'{name}'") as told:
        Table().fit(frame)
    assert len(told) == 1
    Table(ignore=[name]).fit(frame)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "values"),
    [("paid", range(30)), ("id", [0.5 * i for i in range(30)]), ("id", [1, 2, 3] * 10), ("id", range(12))],
    ids=["a quantity", "no integers", "groups", "too few to tell"],
)
def test_other_numbers_are_no_identifier(name, values):
    Table().fit({name: values, "area": [1.0, 2.0, 4.0] * (len(values) // 3)})
