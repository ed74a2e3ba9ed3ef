"""`likely sample` writes what `model.sample` draws, for models of rows and for models of a target."""

from __future__ import annotations

import datetime as dt

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
    refused(run("sample", "m", "points.csv"), "m is a model of rows", "do not pass a TABLE")
    refused(run("sample", regressor), "is a model of 'spend' given other columns; give the TABLE that has them")


@pytest.fixture
def flow(run):
    rng = np.random.default_rng(0)
    size, kind = rng.normal(size=40), rng.choice(["low", "high"], 40)
    day = [dt.date(2026, 1, 1) + dt.timedelta(days=int(days)) for days in rng.integers(0, 90, 40)]
    table = pl.DataFrame({"size": size, "kind": kind, "count": rng.integers(0, 9, 40), "day": day})
    table.write_csv("mixed.csv")
    text = "flow('affine', layers=1, network=mlp(hidden=[4]), inference=map(epochs=2))"
    said = run("fit", "mixed.csv", "--model", text, "-o", "flow")
    assert said.code == 0
    assert "likely impute flow TABLE, or likely sample flow" in said.out
    return load("flow")


def test_columns_of_new_rows_can_be_held(run, flow):
    drawn = pl.read_csv(
        run("sample", "flow", "-n", 5, "--fix", "kind=low", "--fix", "count=3").out.encode(), try_parse_dates=True
    )
    assert drawn.schema == {"size": pl.Float64, "kind": pl.String, "count": pl.Int64, "day": pl.Date}
    assert drawn["kind"].to_list() == ["low"] * 5
    assert drawn["count"].to_list() == [3] * 5
    held = flow.sample(5, {"kind": "low", "count": 3}, 0)
    np.testing.assert_allclose(drawn["size"], held["size"], rtol=1e-6)
    later = pl.read_csv(run("sample", "flow", "-n", 2, "--fix", "day=2026-02-03").out.encode(), try_parse_dates=True)
    assert later["day"].to_list() == [dt.date(2026, 2, 3)] * 2


@pytest.mark.parametrize(
    ("fix", "message"),
    [
        ("kind", "--fix 'kind' must be COLUMN=VALUE"),
        ("knid=low", "the model has no column 'knid'. Did you mean 'kind'? It has size, kind, count, day."),
        ("kind=lo", "Column 'kind' has 'lo' at row 0, which training did not show; known: 'high', 'low'."),
        ("size=big", "--fix 'size=big': the column has numbers, and 'big' is not one."),
        ("day=soon", "--fix 'day=soon': the column has dates, and 'soon' is not one."),
    ],
)
def test_what_cannot_be_held_is_named(run, flow, fix, message):
    said = run("sample", "flow", "--fix", fix)
    assert said.code != 0
    assert message in " ".join(said.err.split())


def test_rows_are_scored_by_their_log_probability(run, flow):
    said = run("evaluate", "flow", "mixed.csv", "--json").json()
    rows = pl.read_csv("mixed.csv", try_parse_dates=True)
    assert said["log_score"] == pytest.approx(flow.log_prob(rows).mean(), rel=1e-6)
    assert "a lower bound" in run("evaluate", "flow", "mixed.csv").out  # counts are spread over their unit
