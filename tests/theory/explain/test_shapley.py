"""Shapley values have the closed form of a line, and the four properties that define them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from likely import Classifier, GaussianProcess, Regressor
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.inference import MAP, MCDropout
from likely.networks import MLP
from likely.optim import Adam
from likely.theory.explain import shapley

RNG = np.random.default_rng(3)
ROWS, BACKGROUND = RNG.normal(size=(3, 5)), RNG.normal(size=(20, 5))


def curved(x):
    return np.tanh(x[:, 0]) * x[:, 1] + x[:, 2] ** 2 - x[:, 3]  # the last column does nothing


def entangled(x):
    """Three columns meet, so that an order and its reverse do not add the same for all."""
    return np.tanh(x[:, 0] * x[:, 1] * x[:, 2]) + np.sin(x[:, 1] + x[:, 3] + x[:, 4]) * x[:, 0]


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
    """Against those of all sets; six standard errors of 15 numbers, each a mean of 4,000 (false alarms below 1e-6).

    Of 400 their tails would be longer: some orders are rare, and an error that missed them is too small.
    """
    whole = shapley(entangled, ROWS, BACKGROUND)
    drawn = shapley(entangled, ROWS, BACKGROUND, exact=0, permutations=4000, random_state=seed)
    assert (np.abs(drawn.values - whole.values) <= 6 * drawn.standard_error + 1e-12).all()
    np.testing.assert_allclose(drawn.gap, 0, atol=1e-12)
    assert whole.standard_error is None
    wide = shapley(lambda x: x @ np.arange(14.0), RNG.normal(size=(1, 14)), RNG.normal(size=(9, 14)), permutations=20)
    assert wide.standard_error.shape == (1, 14)


def test_standard_errors_are_those_of_the_drawn_orders_alone(seed):
    """The mean square of error / standard error is 1; over 40 runs it has a standard deviation below 0.1, so that 0.6
    and 1.5 are four of them away (false alarms below 1e-3).
    """
    whole, generator = shapley(entangled, ROWS, BACKGROUND).values, np.random.default_rng(seed)
    squares = []
    for _ in range(40):
        drawn = shapley(entangled, ROWS, BACKGROUND, exact=0, permutations=400, random_state=generator)
        squares.append(((drawn.values - whole) / drawn.standard_error) ** 2)
    assert 0.6 < np.mean(squares) < 1.5


def test_where_every_order_adds_the_same_there_is_no_error():
    """A line, whatever the rows of the background; and one row of it with the fewest orders has errors, not NaN."""
    drawn = shapley(lambda x: x @ np.arange(5.0), ROWS, BACKGROUND, exact=0, permutations=40, random_state=0)
    np.testing.assert_allclose(drawn.standard_error, 0, atol=1e-12)
    np.testing.assert_allclose(drawn.values, np.arange(5.0) * (ROWS - BACKGROUND.mean(0)), atol=1e-12)
    few = shapley(entangled, ROWS, BACKGROUND[:1], exact=0, permutations=2, random_state=0)
    assert np.isfinite(few.standard_error).all()
    assert few.standard_error.max() > 0


def test_masks_are_fixed_while_shares_are_found(table):
    """Then f is a function of the row, and the shares sum to what they should; a model that draws anew is told."""
    X, y, _ = table
    inference = MCDropout(10, by=MAP(Adam(0.03), epochs=10))
    model = Classifier(network=MLP((8,), dropout=0.2), inference=inference, random_state=0).fit(X, y)
    shares = shapley(model, X[:2], X[:10])
    np.testing.assert_allclose(shares.gap, 0, atol=1e-5)
    noise = np.random.default_rng(0)
    with pytest.warns(ApproximationWarning, match="the shares miss .*: the model gives a row another answer"):
        shapley(lambda x: noise.normal(size=len(x)), ROWS, BACKGROUND)


def test_any_model_that_predicts(net, ensemble, table):
    X, _, score = table
    process = GaussianProcess().fit(X[:20], score[:20])
    for model in (net, ensemble, process):
        shares = shapley(model, X[:2], X[:15])
        np.testing.assert_allclose(shares.gap, 0, atol=1e-4)
    odds = shapley(net, X[:2], X[:15], of="probability")
    np.testing.assert_allclose(odds.output, net.predict_proba(X[:2]).max(1), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shapley(curved, ROWS, BACKGROUND[:, :3]), DataError, "background has 3 columns and X has 5"),
        (lambda: shapley(curved, ROWS[0], BACKGROUND), DataError, r"X has shape \(5,\)"),
        (lambda: shapley(curved, [["a"]], BACKGROUND), DataError, "a table .* of numbers is needed"),
        (lambda: shapley(curved, ROWS, BACKGROUND, exact=30), SpecError, "exact=30 must be from 0 to 20"),
        (lambda: shapley(curved, ROWS, BACKGROUND, of="logit"), SpecError, "of='logit' must be output"),
        (
            lambda: shapley(Regressor().fit(BACKGROUND, BACKGROUND[:, 0]), ROWS, np.diag([np.nan] * 5)),
            DataError,
            r"background has NaN at row \d+, column \d, which the model does not take; leave such rows out",
        ),
        (lambda: shapley(3, ROWS, BACKGROUND), SpecError, "must have predict_proba or predict"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
