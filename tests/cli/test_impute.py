"""`likely impute` fills the gaps of a table by a model of its rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely import load

QUICK = "inference=map(epochs=3,batch_size=20)"


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    size = rng.normal(size=40)
    colour = np.where(size > 0, "red", "blue")
    rows = pl.DataFrame({"size": size, "colour": colour, "id": np.arange(40)})
    holes = rows.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("size")).alias("size"),
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("colour")).alias("colour"),
    )
    holes.write_csv("holes.csv")
    return holes


@pytest.mark.parametrize("model", ["mixture(n_components=2)", f"autoregressive({QUICK})", f"vae(latent=1,{QUICK})"])
def test_gaps_are_filled_and_the_rest_stays(run, table, model):
    assert run("fit", "holes.csv", "--model", model, "--ignore", "id", "-o", "m").code == 0
    said = run("impute", "m", "holes.csv", "-o", "whole.csv")
    assert "filled" in said.out
    whole = pl.read_csv("whole.csv")
    assert whole.columns == table.columns
    assert whole.null_count().sum_horizontal().item() == 0
    known = table["size"].is_not_null()
    np.testing.assert_allclose(whole["size"].filter(known), table["size"].filter(known), rtol=1e-6)
    assert set(whole["colour"]) <= {"red", "blue"}
    assert whole["id"].to_list() == list(range(40))
    drawn = run("impute", "m", "holes.csv", "--draw", "--json").json()
    assert drawn["filled"] == int(table.null_count().sum_horizontal().item())


@pytest.mark.parametrize("model", [f"flow(layers=2,{QUICK})", f"autoregressive({QUICK})"])
def test_new_rows_of_a_table_are_a_table(run, table, model):
    table.drop_nulls().write_csv("full.csv")
    assert run("fit", "full.csv", "--model", model, "--ignore", "id", "-o", "m").code == 0
    new = pl.read_csv(run("sample", "m", "--rows", 6).out.encode())
    assert new.columns == ["size", "colour"]
    assert set(new["colour"]) <= {"red", "blue"}
    assert new.height == 6
    assert load("m").sample(6, random_state=0)["colour"].to_list() == new["colour"].to_list()


def test_a_model_that_fills_no_gaps_says_so(run, refused, table):
    table.drop_nulls().select("size").write_csv("numbers.csv")
    assert run("fit", "numbers.csv", "--model", "k_means(n_clusters=2)", "-o", "k").code == 0
    refused(run("impute", "k", "numbers.csv"), "k holds a KMeans, which cannot impute missing values")
