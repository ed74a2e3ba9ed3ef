"""`likely forecast` writes what `Forecaster.predict_frame` answers, and draws it."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from likely import Forecaster, load


@pytest.fixture
def months(run):
    t = np.arange(72)
    values = np.exp(4 + 0.01 * t + 0.2 * np.sin(2 * np.pi * t / 12) + 0.02 * np.random.default_rng(0).normal(size=72))
    frame = pl.DataFrame({"Month": [dt.date(2015 + k // 12, k % 12 + 1, 1) for k in t], "Sales": values})
    frame.write_csv("sales.csv")
    return frame


def test_the_answers_are_those_of_python(run, months):
    said = run("forecast", "sales.csv", "--date", "month", "--target", "sales", "--steps", 6, "--out", "f.csv")
    assert said.code == 0, said.err
    assert "6 steps of sales after 72 rows of sales.csv" in said.out
    assert "a season of 12 steps" in said.out
    written = pl.read_csv("f.csv", try_parse_dates=True)
    model = Forecaster(date="Month", target="Sales", random_state=0).fit(months)
    expected = model.predict_frame(6, 0.9)
    assert written.columns == expected.columns == ["Month", "Sales", "Sales_lower", "Sales_upper"]
    np.testing.assert_allclose(written["Sales"], expected["Sales"], rtol=1e-9)
    assert str(written["Month"][0]) == "2021-01-01"


def test_a_picture_a_model_and_json(run, months):
    options = ("--date", "Month", "--target", "Sales", "--steps", 3, "--network", "naive()")
    answer = run("forecast", "sales.csv", *options, "--plot", "f.png", "--model-out", "m", "--json").json()
    assert len(answer["forecast"]) == 3
    np.testing.assert_allclose(load("m").predict(3), [row["Sales"] for row in answer["forecast"]], rtol=1e-9)
    with open("f.png", "rb") as picture:
        assert picture.read(4) == b"\x89PNG"


def test_slips_are_named(run, refused, months):
    known = ("forecast", "sales.csv", "--steps", 2)
    refused(run(*known, "--target", "price"), "--target 'price': the table has no such column; it has Month, Sales")
    refused(run(*known, "--target", "Sales", "--season", "long"), "must be a number of steps, none or auto")
    refused(run(*known, "--target", "Sales", "--interval", 2), "must lie strictly between 0 and 1")
