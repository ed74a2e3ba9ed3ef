"""`likely compare`: a leaderboard on the same folds."""

from __future__ import annotations

import shlex

import numpy as np
import polars as pl
import pytest

from likely.cli.compare import candidates, chosen, families
from likely.core.errors import SpecError
from likely.data import read_table


def test_the_leaderboard_orders_models_by_score(run, shop):
    models = ["-m", "linear", "-m", "ridge", "-m", "likelihood=student_t()"]
    said = run("compare", shop, "-t", "spend", "--ignore", "id", *models, "--folds", "3", "--json").json()
    scores = [entry["score"] for entry in said["entries"]]
    assert scores == sorted(scores, reverse=True)
    assert said["best"] == said["entries"][0]["name"]
    assert {entry["name"] for entry in said["entries"]} == {"linear", "ridge", "likelihood=student_t()"}
    assert all(entry["standard_error"] > 0 for entry in said["entries"])
    assert all(entry["metrics"]["rmse"] > 0 for entry in said["entries"])


def test_it_says_what_to_type_next(run, shop):
    ran = run("compare", shop, "-t", "outcome", "--ignore", "id", "-m", "ridge", "--folds", "3")
    assert ran.code == 0
    assert "classify, since it holds text" in ran.out
    words = shlex.split(ran.out.splitlines()[-1].removeprefix("next"))
    assert words[:2] == ["likely", "fit"]
    assert run(*words[1:]).code == 0


def test_a_rare_category_does_not_stop_it(run):
    rng = np.random.default_rng(0)
    kinds = ["a", "b"] * 14 + ["rare", "rarer"]
    pl.DataFrame({"x": rng.normal(size=30), "k": kinds, "y": rng.normal(size=30)}).write_csv("t.csv")
    said = run("compare", "t.csv", "-t", "y", "-m", "linear", "--json").json()
    assert said["entries"][0]["error"] is None


def test_a_table_that_fit_refuses_is_refused_here_too(run, refused):
    """Fifty codes are categories and fifty-two are too many: each fold may lack some."""
    codes = [f"c{i % 52}" for i in range(60)]
    pl.DataFrame({"code": codes, "y": np.arange(60.0)}).write_csv("codes.csv")
    message = "'code' is text with 52 different values"
    refused(run("compare", "codes.csv", "-t", "y", "-m", "linear"), message)
    refused(run("fit", "codes.csv", "-t", "y", "--out", "m.likely"), message)


def test_a_model_that_fails_is_reported_and_the_others_go_on(run, shop):
    models = ["-m", "linear", "-m", "likelihood=poisson()"]
    ran = run("compare", shop, "-t", "spend", "--ignore", "id", *models, "--folds", "3", "--json")
    assert ran.json()["best"] == "linear"
    assert "Poisson needs counts" in ran.json()["entries"][1]["error"]


@pytest.mark.parametrize("task", ["regress", "classify"])
def test_every_default_candidate_can_be_built(shop, task):
    from likely.cli.options import build_model

    target = {"regress": "spend", "classify": "outcome"}[task]
    parts = candidates(task, read_table(shop), target)
    assert "linear" in parts
    for own in parts.values():
        build_model(task, own, target)


def test_names_and_parts_are_told_apart():
    known = {"linear": {}, "ridge": {"prior": "normal()"}}
    assert chosen(known, []) == known
    assert chosen(known, ["ridge", "prior=flat()"]) == {
        "ridge": {"prior": "normal()"},
        "prior=flat()": {"prior": "flat()"},
    }
    with pytest.raises(SpecError, match="'lineer' is not one of linear, ridge"):
        chosen(known, ["lineer"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "lineer"], "'lineer' is not one of linear, ridge"),
        (["--models", "colour=red()"], "'colour' is not one of likelihood, network, prior, inference"),
        (["--models", "network=mpl()"], "Unknown network 'mpl'"),
        (["--folds", "1"], "--folds 1: at least 2"),
        (["--folds", "100"], "--folds 100 needs at least 200 rows"),
        (["--target", "spent"], "no column 'spent'"),
    ],
)
def test_options_that_cannot_be_met(run, shop, refused, options, message):
    refused(run("compare", shop, "--target", "spend", "--ignore", "id", *options), message)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, 2, 3, 2, 1], ["poisson", "negative_binomial"]),
        ([0, 0, 0, 0, 0, 7, 9, 8], ["poisson", "negative_binomial", "zero_inflated"]),
        ([2.5, 0.1, 90.0], ["gamma", "log_normal"]),
        ([0.2, 0.9, 0.5], ["beta"]),
        ([-1.0, 2.0], []),
        ([1990, 2001, 2010], ["gamma", "log_normal"]),
    ],
)
def test_families_are_those_that_the_target_can_have(values, expected):
    assert families(np.array(values, dtype=float)) == expected


def test_counts_are_compared_by_families_of_counts_and_beside_boosting(run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    pl.DataFrame({"x": x, "visits": rng.poisson(np.exp(1.0 + x))}).write_csv("t.csv")
    models = ["-m", "linear", "-m", "poisson", "-m", "boosting"]
    said = run("compare", "t.csv", "-t", "visits", *models, "--folds", "2", "--json").json()
    assert said["best"] == "poisson"
    outside = said["entries"][-1]
    assert (outside["name"], outside["scored"], outside["score"], outside["error"]) == ("boosting", False, None, None)
    assert outside["metrics"]["rmse"] > 0
    shown = run("compare", "t.csv", "-t", "visits", *models, "--folds", "2").out
    assert "no probabilities" in shown
    alone = run("compare", "t.csv", "-t", "visits", "-m", "boosting", "--folds", "2")
    assert alone.code == 0
    assert "next" not in alone.out
    fitted = run("fit", "t.csv", "-t", "visits").out
    assert "the target has integers from 0 to" in fitted
    assert "negative_binomial or zero_inflated may suit it better (likely compare)" in fitted
    assert "as asked for" in run("fit", "t.csv", "-t", "visits", "--likelihood", "poisson").out


def test_codes_in_order_and_labels_are_scored_beside_boosting(run):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    pl.DataFrame({"x": x, "grade": np.digitize(x + rng.normal(size=60), [-0.5, 0.5])}).write_csv("t.csv")
    said = run("compare", "t.csv", "-t", "grade", "-m", "ordinal", "-m", "boosting", "--folds", "2", "--json").json()
    assert said["best"] == "ordinal"
    assert all(entry["scored"] and entry["score"] is not None for entry in said["entries"])
    assert "Categorical(classes=3), since the target has 3 classes" in run("fit", "t.csv", "-t", "grade").out
