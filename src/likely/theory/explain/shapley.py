"""Shapley values: the fair share of each column in what a model says of a row.

    φ_j = Σ over S ∌ j of  |S|! (d − |S| − 1)! / d!  ·  (v(S ∪ j) − v(S)),     v(S) = mean over b of f(x_S, b_rest)

v(S) is what the model says on average if only the columns S are those of the row, and the others those of rows b of a
background. The shares sum to f(x) − mean f(b) (efficiency); columns that do the same have the same (symmetry), those
that do nothing have 0 (dummy), and shares of a sum of models are sums of shares (additivity). With more columns than
`exact`, orders of the columns are drawn: a share is the mean of what a column adds to those before it.

Every row b has equally many of the drawn orders, so that what varies from one b to the next is no error. With m pairs
of an order and its reverse for each of B rows, and s_b the standard deviation of what the pairs of b add,

    standard error = √(Σ_b s_b² / m) / B
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import ApproximationWarning, DataError, SpecError
from ...core.random import seed_of
from ...core.spec import is_integer
from .attribution import Attribution
from .columns import Columns
from .outputs import asked_output
from .places import places_of

__all__ = ["shapley"]

MOST = 100
"""Rows of the background that are used, unless it is given with fewer."""
BLOCK = 1 << 16
"""Rows that are asked about at once."""
LIMIT = 20
"""Columns whose sets can be counted through at all."""
LOST = 1e-3
"""How far shares may be from their sum, relative to the change of f or to 1, by rounding in float32."""


def shapley(
    model: Any,
    X: Any,
    background: Any,
    target: Any = None,
    *,
    of: str = "auto",
    exact: int = 12,
    permutations: int = 1000,
    random_state: Any = None,
) -> Attribution:
    """Shapley values of each column for rows X, against a `background`: training rows, of which 100 are used at most.

    `model` is anything with `predict_proba` or `predict` (a `TableModel` with frames, too), or a function of arrays to
    numbers. f is the log-odds of the class `target` (by default each row's most probable one), its "probability", or
    what a regressor predicts. Up to `exact` columns all 2ᵈ sets are counted; with more, `permutations` orders are
    drawn, each with its reverse (at least four for each row of the background), and `standard_error` says how exactly
    each share is known.

    >>> from likely import Regressor
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> model = Regressor().fit(X, [1.0, 2.0, 5.0, 6.0])
    >>> shares = shapley(model, X, X)
    >>> bool(np.allclose(shares.values, model.coef_ * (X - X.mean(0))))
    True
    """
    if not is_integer(exact, 0) or exact > LIMIT or not is_integer(permutations, 2):
        raise SpecError(f"exact={exact!r} must be from 0 to {LIMIT}, and permutations={permutations!r} 2 or more.")
    rows, others = Columns.of(X, "X"), Columns.of(background, "background")
    if rows.names != others.names or rows.width != others.width:
        raise DataError(f"background has {others.width} columns and X has {rows.width}; they must be the same ones.")
    generator = np.random.default_rng(seed_of(random_state))
    if len(others) > MOST:
        others = others.take(np.sort(generator.choice(len(others), MOST, replace=False)))
    ask, chosen, classes = asked_output(model, of)
    scores = ask(rows.rows)
    place, names = places_of(scores, target, classes)
    values, errors = np.zeros((len(rows), rows.width)), np.zeros((len(rows), rows.width))
    at_background = _asked_background(ask, others, background)
    for i in range(len(rows)):
        mixed = rows.take(np.array([i])).before(others)  # row 0 is x, row 1 + b is b

        def value(own: np.ndarray, partner: np.ndarray, k: int = int(place[i]), mixed: Columns = mixed) -> np.ndarray:
            """f where `own` (m, d) says which columns are x's, the others those of the partner (m,)."""
            index = np.where(own, 0, 1 + partner[:, None])
            blocks = [index[first : first + BLOCK] for first in range(0, len(index), BLOCK)]
            return np.concatenate([ask(mixed.mix(block))[:, k] for block in blocks])

        if rows.width <= exact:
            values[i] = _counted(value, rows.width, len(others))
        else:
            values[i], errors[i] = _sampled(value, rows.width, len(others), permutations, generator)
    model_names = getattr(model, "feature_names_in_", None)
    columns = rows.names or (None if model_names is None else tuple(map(str, model_names)))
    found = Attribution(
        values,
        "shapley",
        chosen,
        names,
        scores[np.arange(len(rows)), place],
        at_background.mean(0)[place],
        None if rows.width <= exact else errors,
        rows.numbers(),
        columns,
    )
    _tell(found)
    return found


def _asked_background(ask: Callable[[Any], np.ndarray], others: Columns, background: Any) -> np.ndarray:
    """f of the rows of the background; if the model refuses them for a missing value, the message says where it is."""
    try:
        return ask(others.rows)
    except ValueError as error:
        numbers = Columns.of(background, "background").numbers()
        if numbers is None or bool(np.isfinite(numbers).all()):
            raise
        row, column = np.argwhere(~np.isfinite(numbers))[0]
        name = repr(others.names[column]) if others.names else column
        raise DataError(
            f"background has {'NaN' if np.isnan(numbers[row, column]) else 'infinity'} at row {row}, column {name}, "
            "which the model does not take; leave such rows out."
        ) from error


def _tell(found: Attribution) -> None:
    """Warn where shares do not sum to f(x) − mean f(b), as they must if f is a function of the row."""
    assert found.gap is not None
    assert found.baseline is not None
    lost = np.abs(found.gap) / np.maximum(1.0, np.abs(found.output - found.baseline))
    if bool((lost > LOST).any()):
        row = int(lost.argmax())
        warnings.warn(
            f"Row {row}: the shares miss f(x) − mean f(background) by {found.gap[row]:.2g}: the model gives a row "
            "another answer when it is asked again, or beside other rows.",
            ApproximationWarning,
            stacklevel=4,
        )


Value = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _counted(value: Value, width: int, others: int) -> np.ndarray:
    """All 2ᵈ sets, with every row of the background."""
    sets = (np.arange(2**width)[:, None] >> np.arange(width)) & 1 == 1
    v = value(np.repeat(sets, others, 0), np.tile(np.arange(others), len(sets))).reshape(len(sets), others).mean(1)
    sizes = sets.sum(1)
    factorial = [math.factorial(k) for k in range(width + 1)]
    share = np.array([factorial[k] * factorial[width - k - 1] / factorial[width] for k in range(width)])
    values = np.empty(width)
    for j in range(width):
        without = np.flatnonzero(~sets[:, j])
        values[j] = np.sum(share[sizes[without]] * (v[without + 2**j] - v[without]))
    return values


def _sampled(
    value: Value, width: int, others: int, permutations: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Means over orders and their reverses, and the standard errors of those pairs.

    Every row of the background is the partner of equally many, so that the shares sum to what they should exactly.
    """
    each = max(2, -(-permutations // (2 * others)))  # two at least, to see how they vary
    pairs = each * others
    partner = np.arange(pairs) % others
    order = generator.permuted(np.tile(np.arange(width), (pairs, 1)), axis=1)
    both = np.stack([order, order[:, ::-1]], 1).reshape(2 * pairs, width)
    rank = np.argsort(both, 1)  # the place of each column in its order
    own = rank[:, None, :] < np.arange(width + 1)[None, :, None]  # (orders, columns that are there, columns)
    steps = value(own.reshape(-1, width), np.repeat(np.repeat(partner, 2), width + 1)).reshape(-1, width + 1)
    added = np.take_along_axis(np.diff(steps, axis=1), rank, 1)
    means = added.reshape(each, others, 2, width).mean(2)
    return means.mean((0, 1)), np.sqrt(means.var(0, ddof=1).sum(0) / each) / others
