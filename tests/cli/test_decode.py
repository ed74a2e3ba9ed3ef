"""`likely decode` says the hidden states that `model.decode` finds, and how probable each is."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely import load


@pytest.fixture
def chain(run):
    rng = np.random.default_rng(1)
    state = (np.arange(60) // 15) % 2
    frame = pl.DataFrame({"count": rng.poisson(2 + 15 * state), "true": state})
    frame.write_csv("counts.csv")
    model = "hidden_markov(poisson(), n_states=2, inference=em(starts=2))"
    assert run("fit", "counts.csv", "--model", model, "--ignore", "true", "-o", "m").code == 0
    return load("m"), frame


@pytest.mark.parametrize("method", ["viterbi", "posterior"])
def test_states_are_those_of_python(run, chain, method):
    model, frame = chain
    answer = run("decode", "m", "counts.csv", "--method", method, "--json").json()
    states = [row["state"] for row in answer["states"]]
    assert answer["rows"] == 60
    assert states == list(model.decode(frame, method))
    probabilities = model.predict_proba(frame)[np.arange(60), states]
    np.testing.assert_allclose([row["probability"] for row in answer["states"]], probabilities, rtol=1e-6)


def test_a_pipe_gets_all_rows_and_a_file_gets_them_beside_the_table(run, chain):
    piped = pl.read_csv(run("decode", "m", "counts.csv").out.encode())
    assert piped.columns == ["state", "probability"]
    assert piped.height == 60
    said = run("decode", "m", "counts.csv", "--out", "states.csv")
    assert "60 rows of counts.csv" in said.out
    written = pl.read_csv("states.csv")
    assert written.columns == ["count", "true", "state", "probability"]
    assert written["state"].to_list() == piped["state"].to_list()
    agree = (written["state"] == written["true"]).mean()
    assert max(agree, 1 - agree) > 0.95


def test_models_without_states_and_unknown_methods_are_refused(run, refused, chain, regressor):
    refused(run("decode", regressor, "counts.csv"), "has no hidden states; fit one with")
    refused(run("decode", "m", "counts.csv", "--method", "best"), "method must be viterbi or posterior")
