"""`likely sample` writes what `model.sample` draws, for models of rows and for models of a target."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from likely import load


@pytest.fixture
def mixture(run):
    rng = np.random.default_rng(0)
    pl.DataFrame({"a": rng.normal(size=40), "b": rng.normal(5.0, 1.0, size=40)}).write_csv("points.csv")
    assert run("fit", "points.csv", "--model", "gaussian_mixture(n_components=2)", "-o", "m").code == 0
    return load("m")


def test_rows_are_those_of_python(run, mixture):
    expected = mixture.sample(7, random_state=3, return_hidden=True)
    printed = pl.read_csv(run("sample", "m", "--rows", 7, "--random-state", 3).out.encode())
    assert printed.columns == expected.columns == ["a", "b", "component"]
    np.testing.assert_allclose(printed.to_numpy(), expected.to_numpy(), rtol=1e-6)


def test_json_and_files_hold_the_same_draws(run, mixture):
    drawn = run("sample", "m", "-n", 4, "--json").json()
    assert drawn["rows"] == 4
    said = run("sample", "m", "-n", 4, "--out", "new.csv")
    assert "4 rows of a, b, component" in said.out
    written = pl.read_csv("new.csv")
    np.testing.assert_allclose(written["a"], [row["a"] for row in drawn["draws"]], rtol=1e-6)


def test_targets_are_drawn_for_each_row_of_a_table(run, shop, regressor):
    drawn = pl.read_csv(run("sample", regressor, shop, "-n", 2).out.encode())
    rows = pl.read_csv(shop).height
    assert drawn.columns == ["row", "spend"]
    assert drawn["row"].to_list() == list(range(rows)) * 2
    assert drawn["spend"].std() > 0


def test_a_table_too_many_or_too_few_is_told(run, refused, mixture, shop, regressor):
    refused(run("sample", "m", "points.csv"), "m is a model of rows", "takes no TABLE")
    refused(run("sample", regressor), "is a model of 'spend' given other columns; give the TABLE that has them")
