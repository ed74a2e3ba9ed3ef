"""Shapley values: the fair share of each column in what a model says of a row.

    φ_j = Σ over S ∌ j of  |S|! (d − |S| − 1)! / d!  ·  (v(S ∪ j) − v(S)),     v(S) = mean over b of f(x_S, b_rest)

v(S) is what the model says on average if only the columns S are those of the row, and the others those of rows b of a
background. The shares sum to f(x) − mean f(b) (efficiency); columns that do the same have the same (symmetry), those
that do nothing have 0 (dummy), and shares of a sum of models are sums of shares (additivity). With more columns than
`exact`, orders of the columns are drawn: a share is the mean of what a column adds to those before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import DataError, SpecError
from ...core.random import seed_of
from ...core.spec import is_integer
from .attribution import Attribution
from .outputs import asked_output
from .places import places_of

__all__ = ["shapley"]

MOST = 100
"""Rows of the background that are used, unless it is given with fewer."""
BLOCK = 1 << 16
"""Rows that are asked about at once."""
LIMIT = 20
"""Columns whose sets can be counted through at all."""


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
    drawn, each with its reverse, and `standard_error` says how exactly each share is known.

    >>> from likely import Regressor
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> model = Regressor().fit(X, [1.0, 2.0, 5.0, 6.0])
    >>> shares = shapley(model, X, X)
    >>> bool(np.allclose(shares.values, model.coef_ * (X - X.mean(0))))
    True
    """
    if not is_integer(exact, 0) or exact > LIMIT or not is_integer(permutations, 2):
        raise SpecError(f"exact={exact!r} must be from 0 to {LIMIT}, and permutations={permutations!r} 2 or more.")
    rows, others = _Columns.of(X, "X"), _Columns.of(background, "background")
    if rows.names != others.names or rows.width != others.width:
        raise DataError(f"background has {others.width} columns and X has {rows.width}; they must be the same ones.")
    generator = np.random.default_rng(seed_of(random_state))
    if len(others) > MOST:
        others = others.take(np.sort(generator.choice(len(others), MOST, replace=False)))
    ask, chosen, classes = asked_output(model, of)
    scores = ask(rows.rows)
    place, names = places_of(scores, target, classes)
    values, errors = np.zeros((len(rows), rows.width)), np.zeros((len(rows), rows.width))
    at_background = ask(others.rows)
    for i in range(len(rows)):
        mixed = rows.take(np.array([i])).before(others)  # row 0 is x, row 1 + b is b

        def value(own: np.ndarray, partner: np.ndarray, k: int = int(place[i]), mixed: _Columns = mixed) -> np.ndarray:
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
    return Attribution(
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
    pairs = -(-permutations // (2 * others)) * others
    partner = np.arange(pairs) % others
    order = generator.permuted(np.tile(np.arange(width), (pairs, 1)), axis=1)
    both = np.stack([order, order[:, ::-1]], 1).reshape(2 * pairs, width)
    rank = np.argsort(both, 1)  # the place of each column in its order
    own = rank[:, None, :] < np.arange(width + 1)[None, :, None]  # (orders, columns that are there, columns)
    steps = value(own.reshape(-1, width), np.repeat(np.repeat(partner, 2), width + 1)).reshape(-1, width + 1)
    added = np.take_along_axis(np.diff(steps, axis=1), rank, 1)
    means = added.reshape(pairs, 2, width).mean(1)
    return means.mean(0), means.std(0, ddof=1) / math.sqrt(pairs)


class _Columns:
    """Rows whose columns can be mixed: of an array, or of a frame of any kind."""

    def __init__(self, rows: Any, names: tuple[str, ...] | None) -> None:
        self.rows, self.names = rows, names

    @classmethod
    def of(cls, X: Any, name: str) -> _Columns:
        if hasattr(X, "columns") or isinstance(X, dict):
            import narwhals as nw

            from ...data.frame import as_frame

            frame = as_frame(X, name)
            if not len(frame):
                raise DataError(f"{name} has no rows.")
            return cls(nw.to_native(frame), tuple(frame.columns))
        rows = np.asarray(X)
        if rows.ndim != 2 or not len(rows) or rows.dtype.kind not in "fiub":
            raise DataError(
                f"{name} has shape {rows.shape} of {rows.dtype}; a table (n, columns) of numbers is needed."
            )
        return cls(rows if rows.dtype.kind == "f" else rows.astype(float), None)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.names) if self.names is not None else self.rows.shape[1]

    def take(self, index: np.ndarray) -> _Columns:
        if self.names is None:
            return _Columns(self.rows[index], None)
        return _Columns(self.mix(np.repeat(index[:, None], self.width, 1)), self.names)

    def before(self, others: _Columns) -> _Columns:
        """These rows with others behind them."""
        if self.names is None:
            return _Columns(np.concatenate([self.rows, others.rows]), None)
        import narwhals as nw

        both = nw.concat([nw.from_native(part.rows, eager_only=True) for part in (self, others)])
        return _Columns(nw.to_native(both), self.names)

    def mix(self, index: np.ndarray) -> Any:
        """Rows whose column j comes from row index[:, j]."""
        if self.names is None:
            return np.take_along_axis(self.rows, index, 0)
        import narwhals as nw

        frame = nw.from_native(self.rows, eager_only=True)
        columns = [frame[index[:, j].tolist(), [name]] for j, name in enumerate(self.names)]
        return nw.to_native(nw.concat([nw.maybe_reset_index(column) for column in columns], how="horizontal"))

    def numbers(self) -> np.ndarray | None:
        """As an array, where all columns are numbers."""
        if self.names is None:
            return np.asarray(self.rows, dtype=float)
        import narwhals as nw

        frame = nw.from_native(self.rows, eager_only=True)
        if not all(dtype.is_numeric() for dtype in frame.schema.values()):
            return None
        return np.asarray(frame.to_numpy(), dtype=float)
