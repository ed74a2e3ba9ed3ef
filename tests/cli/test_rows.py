"""`likely fit --model`, `likely sample` and `likely decode`: models of the rows themselves, from a terminal."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely import FrameModel, GaussianMixture, HiddenMarkov, load
from likely.likelihoods import Poisson


@pytest.fixture
def clusters(run):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 80)
    frame = pl.DataFrame({"a": rng.normal(size=80) + 8 * group, "b": rng.normal(size=80) - 3 * group, "id": range(80)})
    frame.write_csv("points.csv")
    return frame


@pytest.fixture
def counts(run):
    rng = np.random.default_rng(1)
    state = (np.arange(120) // 20) % 2
    frame = pl.DataFrame({"run": ["x"] * 60 + ["y"] * 60, "count": rng.poisson(2 + 10 * state), "true": state})
    frame.write_csv("counts.csv")
    return frame


def test_a_mixture_is_the_one_that_python_would_fit(run, clusters):
    ran = run("fit", "points.csv", "--model", "gaussian_mixture(n_components=2)", "--ignore", "id", "--random-state", 3)
    assert ran.code == 0, ran.err
    assert "saved     points-gaussian_mixture.likely" in ran.out
    assert "80 rows of a, b" in ran.out
    expected = FrameModel(GaussianMixture(2, random_state=3), ["a", "b"]).fit(clusters)
    loaded = load("points-gaussian_mixture.likely")
    np.testing.assert_array_equal(loaded.log_prob(clusters), expected.log_prob(clusters))
    answers = run("predict", "points-gaussian_mixture.likely", "points.csv", "--json").json()["predictions"]
    assert [row["component"] for row in answers] == expected.predict(clusters).tolist()
    assert {"p_0", "p_1", "log_prob"} <= set(answers[0])


def test_new_rows_are_drawn(run, clusters):
    assert run("fit", "points.csv", "-m", "mixture(normal(), n_components=2)", "--ignore", "id", "-o", "m").code == 0
    ran = run("sample", "m", "--rows", 50, "--random-state", 1)
    drawn = pl.read_csv(ran.out.encode())
    assert drawn.columns == ["a", "b", "component"]
    assert drawn.height == 50
    assert (
        run("sample", "m", "-n", 50, "--random-state", 1).out
        == ran.out
        != run("sample", "m", "-n", 50, "--random-state", 2).out
    )
    assert run("sample", "m", "-n", 5, "--out", "new.csv").code == 0
    assert pl.read_csv("new.csv").height == 5


def test_states_are_decoded(run, counts):
    model = "hidden_markov(poisson(), n_states=2, inference=em(starts=3))"
    fitted = run("fit", "counts.csv", "--model", model, "--sequence", "run", "--ignore", "true", "-o", "m", "--json")
    assert fitted.json()["log_likelihood"] < 0
    ran = run("decode", "m", "counts.csv", "--out", "states.csv")
    assert ran.code == 0, ran.err
    decoded = pl.read_csv("states.csv")
    agree = (decoded["state"] == decoded["true"]).mean()
    assert max(agree, 1 - agree) > 0.97
    inner = load("m").model_
    assert isinstance(inner, HiddenMarkov)
    assert isinstance(inner.likelihood, Poisson)
    by_step = run("decode", "m", "counts.csv", "--method", "posterior", "--json").json()["states"]
    assert all(row["probability"] >= 0.5 for row in by_step)


def test_targets_are_drawn_for_rows(run, shop, regressor):
    drawn = pl.read_csv(run("sample", regressor, shop, "-n", 3).out.encode())
    assert drawn.columns == ["row", "spend"]
    assert drawn.height == 3 * 120


@pytest.mark.parametrize("model", ["kmeans(n_clusters=2)", "pca(n_components=1)", "factor_analysis(n_components=1)"])
def test_models_of_rows_answer_for_each_row(run, clusters, model):
    assert run("fit", "points.csv", "--model", model, "--ignore", "id", "-o", "m").code == 0
    assert len(run("predict", "m", "points.csv", "--json").json()["predictions"]) == 80
    assert run("show", "m").code == 0


def test_what_cannot_be_done_is_said_in_one_line(run, clusters, refused, regressor):
    refused(run("fit", "points.csv"), "--target COLUMN, or --model")
    refused(run("fit", "points.csv", "--model", "gaussian_mixtur(2)"), "Did you mean GaussianMixture?")
    refused(run("fit", "points.csv", "--model", "mixture(norml())"), "Unknown likelihood 'norml'", "Normal")
    refused(run("fit", "points.csv", "--model", "regressor()"), "fitted with --target")
    refused(run("fit", "points.csv", "--model", "kmeans(", "-o", "m"), "write it like a call")
    refused(
        run("fit", "points.csv", "--model", "kmeans(clusters=3)", "-o", "m"), "unexpected keyword argument 'clusters'"
    )
    refused(run("fit", "points.csv", "--model", "kmeans()", "--target", "a"), "--target cannot be given with it")
    refused(run("fit", "points.csv", "-t", "a", "--sequence", "b"), "--sequence 'b' belongs to --model")
    refused(run("fit", "points.csv", "--model", "kmeans(2)", "--ignore", "idd"), "Did you mean 'id'?")
    assert run("fit", "points.csv", "--model", "kmeans(2)", "-o", "m").code == 0
    refused(run("decode", "m", "points.csv"), "holds a KMeans, which has no hidden states")
    refused(run("decode", "m", "points.csv", "--method", "best"), "method must be viterbi or posterior")
    refused(run("sample", "m"), "KMeans cannot make new rows")
    refused(run("sample", regressor), "give the TABLE that has them")


def test_fit_names_only_the_commands_that_its_model_answers(run, clusters):
    said = run("fit", "points.csv", "--model", "k_means(n_clusters=2)", "--ignore", "id", "-o", "m").out
    assert "likely predict m TABLE" in said
    assert "likely sample" not in said
    said = run("fit", "points.csv", "--model", "gan(inference=map(epochs=1))", "--ignore", "id", "-o", "g").out
    assert "likely sample g" in said
    assert "TABLE" not in said
