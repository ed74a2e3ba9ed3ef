"""Shapley values have the closed form of a line, and the four properties that define them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely import Classifier, GaussianProcess, Regressor, TableModel
from likely.core.errors import DataError, SpecError
from likely.data import Table
from likely.theory.explain import shapley

RNG = np.random.default_rng(3)
ROWS, BACKGROUND = RNG.normal(size=(3, 5)), RNG.normal(size=(20, 5))


def curved(x):
    return np.tanh(x[:, 0]) * x[:, 1] + x[:, 2] ** 2 - x[:, 3]  # the last column does nothing


def by_orders(f, x, background):
    """The mean over all orders of what each column adds, written out."""
    width, values = len(x), np.zeros(len(x))
    for order in itertools.permutations(range(width)):
        rows = background.copy()
        before = f(rows).mean()
        for j in order:
            rows[:, j] = x[j]
            after = f(rows).mean()
            values[j] += after - before
            before = after
    return values / math.factorial(width)


def test_a_line_has_its_closed_form(linear, table):
    X = table[0]
    shares = shapley(linear, X[:5], X)
    np.testing.assert_allclose(shares.values, linear.coef_ * (X[:5] - X.mean(0)), atol=1e-8)


def test_log_odds_of_logistic_regression_are_a_line(table):
    X, _, score = table
    model = Classifier(prior="normal(1.0)").fit(X, score > 0)
    shares = shapley(model, X[:4], X[:50], True)
    line = model.coef_[-1] - (model.coef_[0] if len(model.coef_) == 2 else 0)
    np.testing.assert_allclose(shares.values, line * (X[:4] - X[:50].mean(0)), atol=1e-6)


def test_sets_and_orders_agree():
    shares = shapley(curved, ROWS, BACKGROUND)
    for x, values in zip(ROWS, shares.values, strict=True):
        np.testing.assert_allclose(values, by_orders(curved, x, BACKGROUND), atol=1e-10)


def test_efficiency_dummy_symmetry_and_additivity():
    shares = shapley(curved, ROWS, BACKGROUND)
    np.testing.assert_allclose(shares.gap, 0, atol=1e-12)
    np.testing.assert_allclose(shares.baseline, curved(BACKGROUND).mean())
    np.testing.assert_array_equal(shares.values[:, 4], 0)
    symmetric = shapley(lambda x: x[:, 0] * x[:, 1], np.ones((1, 3)) * 2, np.repeat(BACKGROUND[:, :1], 3, 1))
    np.testing.assert_allclose(symmetric.values[0, 0], symmetric.values[0, 1])
    line = shapley(lambda x: x @ np.arange(5.0), ROWS, BACKGROUND)
    both = shapley(lambda x: curved(x) + x @ np.arange(5.0), ROWS, BACKGROUND)
    np.testing.assert_allclose(both.values, shares.values + line.values, atol=1e-10)


def test_sampled_shares_are_within_their_standard_errors_and_still_sum(seed):
    """Against those of all sets; five standard errors of 12 numbers (false alarms below 1e-4)."""
    whole = shapley(curved, ROWS, BACKGROUND)
    drawn = shapley(curved, ROWS, BACKGROUND, exact=0, permutations=400, random_state=seed)
    assert (np.abs(drawn.values - whole.values) <= 5 * drawn.standard_error + 1e-12).all()
    np.testing.assert_allclose(drawn.gap, 0, atol=1e-12)
    assert whole.standard_error is None
    wide = shapley(lambda x: x @ np.arange(14.0), RNG.normal(size=(1, 14)), RNG.normal(size=(9, 14)), permutations=20)
    assert wide.standard_error.shape == (1, 14)


def test_any_model_that_predicts(net, ensemble, table):
    X, _, score = table
    process = GaussianProcess().fit(X[:20], score[:20])
    for model in (net, ensemble, process):
        shares = shapley(model, X[:2], X[:15])
        np.testing.assert_allclose(shares.gap, 0, atol=1e-4)
    odds = shapley(net, X[:2], X[:15], of="probability")
    np.testing.assert_allclose(odds.output, net.predict_proba(X[:2]).max(1), atol=1e-6)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_frames_are_mixed_as_they_are(kind):
    area = np.array([50.0, 80.0, 65.0, 90.0, 40.0, 70.0])
    city = ["Oslo", "Bergen", "Oslo", "Bergen", "Bergen", "Oslo"]
    price = 2 * area + np.where(np.array(city) == "Oslo", 100.0, 0.0)
    frame = kind({"area": area, "city": city, "price": price})
    model = TableModel(Regressor(), "price", Table()).fit(frame)
    given = frame[["area", "city"]]
    shares = shapley(model, given[:2], given)
    assert shares.names == ("area", "city")
    np.testing.assert_allclose(shares.values[:, 0], 2 * (area[:2] - area.mean()), rtol=1e-5)
    np.testing.assert_allclose(shares.values[:, 1], [50.0, -50.0], rtol=1e-5)
    assert shares.to_frame()["input"].to_list() == ["area", "city"] * 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shapley(curved, ROWS, BACKGROUND[:, :3]), DataError, "background has 3 columns and X has 5"),
        (lambda: shapley(curved, ROWS[0], BACKGROUND), DataError, r"X has shape \(5,\)"),
        (lambda: shapley(curved, [["a"]], BACKGROUND), DataError, "a table .* of numbers is needed"),
        (lambda: shapley(curved, ROWS, BACKGROUND, exact=30), SpecError, "exact=30 must be from 0 to 20"),
        (lambda: shapley(curved, ROWS, BACKGROUND, of="logit"), SpecError, "of='logit' must be output"),
        (lambda: shapley(3, ROWS, BACKGROUND), SpecError, "must have predict_proba or predict"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
