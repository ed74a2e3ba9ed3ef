"""Models of rows are measured by what they can be asked: densities, clusters, reconstructions, draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import (
    mean_squared_error,
    r2_score,
    silhouette_score,
)

from likely import load
from likely.data import read_table


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clouds of 60 points, in six sequences of 20."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(60, 2)), rng.normal(5, 1, size=(60, 2))])
    path = tmp_path_factory.mktemp("points") / "points.csv"
    pl.DataFrame({"x": rows[:, 0], "z": rows[:, 1], "walk": np.repeat(np.arange(6), 20)}).write_csv(path)
    return path


def test_sequences_are_scored_by_sequence_and_by_step_as_fit_says(run, points):
    """The mean over sequences times their number is the log-likelihood, and so is the figure per step times rows."""
    fit = ["fit", points, "--model", "hidden_markov(normal(), n_states=2)", "--sequence", "walk", "--out", "h.likely"]
    total = run(*fit, "--json").json()["log_likelihood"]
    said = run("evaluate", "h.likely", points, "--json").json()
    assert (said["rows"], said["sequences"]) == (120, 6)
    assert said["log_score"] * 6 == pytest.approx(total)
    assert said["log_score_per_step"] * 120 == pytest.approx(total)
    assert "mean log p(sequence)" in run("evaluate", "h.likely", points).out
    assert f"{said['log_score_per_step']:.4g} per step" in run(*fit).out


def test_clusters_are_measured_by_distances(run, points):
    ran = run("fit", points, "--model", "k_means(2)", "--ignore", "walk", "--out", "k.likely")
    assert (ran.code, "Iteration" in ran.out + ran.err) == (0, False)
    said = run("evaluate", "k.likely", points, "--json").json()
    rows, model = read_table(points)["x", "z"].to_numpy(), load("k.likely").model_
    assert said["inertia_per_row"] == pytest.approx(model.inertia_ / 120)
    assert said["silhouette"] == pytest.approx(silhouette_score(rows, model.labels_))


def test_an_autoencoder_is_measured_by_what_it_gives_back(run, shop):
    model = "autoencoder(1, inference=map(epochs=2))"
    ignored = [word for name in ("id", "country", "since", "outcome") for word in ("--ignore", name)]
    run("fit", shop, "--model", model, *ignored, "--out", "a.likely")
    said = run("evaluate", "a.likely", shop, "--json").json()
    rows = read_table(shop)
    restored = load("a.likely").model_.reconstruct(rows.drop("id", "country", "since", "outcome"))
    own = {column["column"]: column for column in said["columns"]}
    assert own["spend"]["r2"] == pytest.approx(r2_score(rows["spend"], restored["spend"]), abs=1e-5)
    assert own["spend"]["rmse"] == pytest.approx(mean_squared_error(rows["spend"], restored["spend"]) ** 0.5, rel=1e-4)
    assert own["city"]["accuracy"] == pytest.approx((rows["city"] == restored["city"]).mean())
    assert said["r2"] == pytest.approx(np.mean([column["r2"] for column in said["columns"] if "r2" in column]))
    assert "fraction of the variance that reconstructions keep" in run("evaluate", "a.likely", shop).out


@pytest.mark.parametrize("model", ["gan(inference=map(epochs=1))", "score_model(inference=map(epochs=1))"])
def test_what_only_draws_is_measured_by_a_classifier(run, points, model, refused):
    """Draws after one epoch are told from the rows far more often than by chance."""
    run("fit", points, "--model", model, "--ignore", "walk", "--out", "g.likely", "--json")
    said = run("evaluate", "g.likely", points, "--json").json()
    assert said["told_apart"] > 0.5
    assert said["p_value"] < 0.01
    assert " ± " in run("evaluate", "g.likely", points).out
    read_table(points)[:20].write_csv("few.csv")
    refused(run("evaluate", "g.likely", "few.csv"), "needs 80 rows or more", "the table has 20")
