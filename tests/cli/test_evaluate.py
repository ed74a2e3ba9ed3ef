"""`likely evaluate`: the numbers agree with scikit-learn's."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score

from likely import load
from likely.data import read_table


def test_regression_measures_agree_with_scikit_learn(run, shop, regressor):
    said = run("evaluate", regressor, shop, "--json").json()
    rows = read_table(shop)
    target, predicted = rows["spend"].to_numpy(), load(regressor).predict(rows)
    assert said["rmse"] == pytest.approx(mean_squared_error(target, predicted) ** 0.5, rel=1e-6)
    assert said["r2"] == pytest.approx(r2_score(target, predicted), rel=1e-6)
    lower, upper = load(regressor).predict_interval(rows, 0.9)
    assert said["coverage_90"] == pytest.approx(np.mean((target >= lower) & (target <= upper)))


def test_classification_measures_agree_with_scikit_learn(run, shop, classifier):
    said = run("evaluate", classifier, shop, "--json").json()
    rows, model = read_table(shop), load(classifier)
    assert said["accuracy"] == pytest.approx(accuracy_score(rows["outcome"].to_numpy(), model.predict(rows)))
    expected = -log_loss(rows["outcome"].to_numpy(), model.predict_proba(rows).astype(float), labels=model.classes_)
    assert said["log_score"] == pytest.approx(expected, rel=1e-5)


def test_rows_without_a_target_do_not_count(run, shop, regressor):
    rows = read_table(shop)
    pl.concat([rows, rows[:9].with_columns(spend=pl.lit(None, pl.Float64))]).write_csv("gaps.csv")
    with_gaps = run("evaluate", regressor, "gaps.csv", "--json").json()
    without = run("evaluate", regressor, shop, "--json").json()
    assert without.pop("table") != with_gaps.pop("table")
    assert with_gaps == pytest.approx(without)


def test_a_person_gets_a_table_with_meanings(run, shop, regressor):
    out = run("evaluate", regressor, shop).out
    assert "typical error, in the unit of spend" in out
    assert " ± " in out


def test_without_a_target_there_is_nothing_to_evaluate(run, shop, regressor, refused):
    read_table(shop).drop("spend").write_csv("new.csv")
    refused(run("evaluate", regressor, "new.csv"), "The table has no column 'spend'")
    read_table(shop).with_columns(spend=pl.lit(None)).write_csv("empty.csv")
    refused(run("evaluate", regressor, "empty.csv"), "Target column 'spend' has no value in any of the 120 rows")
