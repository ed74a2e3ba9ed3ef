"""`likely evaluate`: the numbers agree with scikit-learn's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    mean_squared_error,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
)

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


def test_classes_are_told_one_by_one(run, shop, classifier):
    """Precision, recall, AUC and the confusion matrix are scikit-learn's; a picture is drawn."""
    said = run("evaluate", classifier, shop, "--plot", "classes.png", "--json").json()
    assert Path("classes.png").read_bytes()[:4] == b"\x89PNG"
    rows, model = read_table(shop), load(classifier)
    target, predicted = rows["outcome"].to_numpy(), model.predict(rows)
    assert said["confusion"] == confusion_matrix(target, predicted, labels=model.classes_).tolist()
    assert said["auc"] == pytest.approx(roc_auc_score(target == model.classes_[1], model.predict_proba(rows)[:, 1]))
    assert said["precision"] == pytest.approx(precision_score(target, predicted, average="macro"))
    assert said["recall"] == pytest.approx(recall_score(target, predicted, average="macro"))
    assert [own["class"] for own in said["classes"]] == list(model.classes_)
    out = run("evaluate", classifier, shop).out
    assert "each class against the others" in out
    assert "actual by predicted" in out


def test_predictions_are_drawn(run, shop, regressor, refused):
    assert "saved" in run("evaluate", regressor, shop, "--plot", "p.svg").out
    assert "<svg" in Path("p.svg").read_text()
    refused(run("evaluate", regressor, shop, "--plot", "p.doc"), "--plot p.doc: the ending is not known")


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
