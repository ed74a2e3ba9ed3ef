"""`likely compare`: a leaderboard on the same folds."""

from __future__ import annotations

import shlex

import numpy as np
import polars as pl
import pytest

from likely.cli.compare import candidates, chosen
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
