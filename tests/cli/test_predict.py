"""`likely predict`: the answers of the model, as a table for people, CSV for pipes, JSON for programs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely import load
from likely.data import read_table


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_a_file_holds_the_rows_and_the_answers(run, shop, regressor, ending):
    out = Path(f"answers{ending}")
    assert run("predict", regressor, shop, "--interval", "0.5", "--out", out).code == 0
    rows, written, model = read_table(shop), read_table(out), load(regressor)
    assert written.columns == [*rows.columns, "spend_predicted", "spend_lower", "spend_upper"]
    lower, upper = model.predict_interval(rows, 0.5)
    np.testing.assert_allclose(written["spend_predicted"], model.predict(rows), rtol=1e-6)
    np.testing.assert_allclose(written["spend_lower"], lower, rtol=1e-6)
    np.testing.assert_allclose(written["spend_upper"], upper, rtol=1e-6)
    assert [path.name for path in Path().iterdir()] == [out.name]


def test_a_pipe_gets_all_rows_as_csv(run, shop, classifier):
    frame = pl.read_csv(io.StringIO(run("predict", classifier, shop).out))
    assert frame.columns == ["outcome_predicted", "outcome_p_buys", "outcome_p_leaves"]
    np.testing.assert_allclose(frame["outcome_p_buys"] + frame["outcome_p_leaves"], 1, rtol=1e-5)
    best = np.where(frame["outcome_p_buys"] > 0.5, "buys", "leaves")
    assert (frame["outcome_predicted"].to_numpy() == best).all()


def test_json_has_a_record_for_each_row(run, shop, regressor):
    said = run("predict", regressor, shop, "--json").json()
    assert said["rows"] == len(said["predictions"]) == 120
    assert all(row["spend_lower"] < row["spend_predicted"] < row["spend_upper"] for row in said["predictions"])


def test_columns_may_come_in_any_order_and_without_the_target(run, shop, regressor):
    rows = read_table(shop)
    rows.select(reversed([name for name in rows.columns if name not in ("spend", "id")])).write_csv("other.csv")
    assert run("predict", regressor, "other.csv").out == run("predict", regressor, shop).out


def test_an_unseen_category_is_refused_or_ignored(run, shop, regressor, refused):
    read_table(shop).with_columns(city=pl.lit("Rome")).write_csv("rome.csv")
    ran = run("predict", regressor, "rome.csv")
    refused(ran, "Column 'city' has a category that was not in training: 'Rome' at row 0", "--unseen ignore")
    assert run("predict", regressor, "rome.csv", "--unseen", "ignore").code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("age"), "no column 'age'"),
        (lambda rows: rows.drop("age", "city"), "lacks 2 columns that training had: 'age', 'city'"),
        (
            lambda rows: rows.with_columns(visits=pl.lit(None)),
            "Column 'visits' has a missing value (row 0 and",
        ),
        (lambda rows: rows.with_columns(visits=pl.lit("many")), "Column 'visits' was a number in training and is text"),
        (lambda rows: rows.with_columns(visits=pl.lit(float("inf"))), "Column 'visits' has an infinite value"),
        (lambda rows: rows[:0], "but no rows"),
    ],
)
def test_tables_that_do_not_fit_the_model(run, shop, regressor, change, message, refused):
    change(read_table(shop)).write_csv("new.csv")
    refused(run("predict", regressor, "new.csv"), message)


def test_a_table_that_has_the_answers_already(run, shop, regressor, refused):
    assert run("predict", regressor, shop, "--out", "once.csv").code == 0
    refused(run("predict", regressor, "once.csv", "--out", "twice.csv"), "has a column 'spend_predicted' already")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--interval", "1.5"], "--interval 1.5 must lie strictly between 0 and 1"),
        (["--out", "answers.xls"], "--out answers.xls: the ending is not known; use one of .csv, .tsv, .parquet"),
        (["--out", "none/answers.csv"], "there is no folder none"),
        (["--unseen", "maybe"], "unseen must be error or ignore"),
    ],
)
def test_options_that_cannot_be_met(run, shop, regressor, options, message, refused):
    refused(run("predict", regressor, shop, *options), message)


def test_files_that_are_no_models(run, shop, tmp_path, refused):
    (tmp_path / "text.likely").write_text("not a model")
    refused(run("predict", "text.likely", shop), "text.likely is damaged or not a model file")
    refused(run("predict", "none.likely", shop), "No model file at none.likely")
    refused(run("predict", shop, shop), "shop.csv is damaged or not a model file")


def test_a_model_of_arrays_is_no_model_of_tables(run, shop, refused):
    from likely import Regressor

    Regressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5]).save("plain.likely")
    refused(run("predict", "plain.likely", shop), "plain.likely holds a Regressor, which takes arrays")
