"""Double descent: the error on new rows peaks where a model can just fit every training row, and falls again beyond.

    f(x) = θᵀφ(x),   φⱼ(x) = √(2/p) cos(wⱼᵀx + bⱼ),   θ = argmin ‖θ‖ among those with the least Σ(yᵢ − f(xᵢ))²

With fewer features than rows this is least squares; with more, every row is fitted and the smallest θ is taken. At as
many features as rows there is one solution, it fits the noise, and it is huge. For Gaussian rows the curve is known:
p of D columns, n rows, β² the squared coefficients of columns in and out of the model, σ² the noise,

    E(error) = (β²_out + σ²)(1 + p/(n − p − 1))                        p ≤ n − 2
             = β²_in (1 − n/p) + (β²_out + σ²)(1 + n/(p − n − 1))      p ≥ n + 2,   infinite between
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..core.errors import DataError, SpecError

__all__ = ["DoubleDescent", "RandomFeatures", "double_descent", "gaussian_descent"]


@dataclass(frozen=True)
class DoubleDescent:
    """Errors on training and new rows for each size of model, and where the two regimes meet.

    They are medians over repeated fits, since at the threshold the error has no mean; `quartiles` are those of `test`.
    """

    sizes: tuple[float, ...]
    train: np.ndarray
    test: np.ndarray
    quartiles: np.ndarray
    threshold: float
    """The size at which a model can just fit every training row."""
    measure: str = "squared error"

    @property
    def peak(self) -> float:
        """The size with the largest error on new rows."""
        return self.sizes[int(np.nanargmax(self.test))]

    @property
    def best(self) -> float:
        """The size with the least error on new rows."""
        return self.sizes[int(np.nanargmin(self.test))]

    def __str__(self) -> str:
        low, high = float(np.nanmin(self.test)), float(np.nanmax(self.test))
        return (
            f"{self.measure} on new rows peaks at size {self.peak:g} ({high:.3g}), least at {self.best:g} ({low:.3g})"
        )


class RandomFeatures:
    """Least squares of the smallest norm on `width` random waves; `ridge` adds ridge·‖θ‖² to the loss.

    φⱼ(x) = √(2/width) cos(wⱼᵀx + bⱼ), w standard normal over √(columns of X), b uniform, both as they were drawn. With
    ever more of them φ(x)ᵀφ(x') becomes the kernel exp(−‖x − x'‖²/2d).

    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 0.0, 2.0]
    >>> np.allclose(RandomFeatures(50, random_state=0).fit(X, y).predict(X), y)                # more features than rows
    True
    """

    def __init__(self, width: int, ridge: float = 0.0, random_state: Any = None) -> None:
        if width < 1 or width != int(width):
            raise SpecError(f"width={width!r} must be a number of features: an integer, 1 or more.")
        if not ridge >= 0:
            raise SpecError(f"ridge={ridge!r} must be 0 or more.")
        self.width, self.ridge, self.random_state = int(width), ridge, random_state

    def fit(self, X: Any, y: Any) -> RandomFeatures:
        """Draw the features, and solve for θ."""
        rows, target = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        rng = np.random.default_rng(self.random_state)
        self.weights_ = rng.standard_normal((rows.shape[1], self.width)) / math.sqrt(rows.shape[1])
        self.phases_ = rng.uniform(0, 2 * math.pi, self.width)
        features = self.transform(rows)
        if self.ridge:
            features = np.vstack([features, math.sqrt(self.ridge) * np.eye(self.width)])
            target = np.concatenate([target, np.zeros((self.width, *target.shape[1:]))])
        self.coef_ = np.linalg.lstsq(features, target, rcond=None)[0]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """φ(x) of each row, (n, width)."""
        waves = np.cos(np.asarray(X, dtype=float) @ self.weights_ + self.phases_)
        return math.sqrt(2 / self.width) * waves

    def predict(self, X: Any) -> np.ndarray:
        """θᵀφ(x)."""
        return self.transform(X) @ self.coef_


def double_descent(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    sizes: Sequence[float],
    model: Callable[[float, int], Any] | Sequence[Any] | None = None,
    *,
    threshold: float | None = None,
    repeats: int = 10,
    random_state: int = 0,
) -> DoubleDescent:
    """Errors on training and new rows for models of growing size: medians over `repeats` fits of each.

    A model is `RandomFeatures(size)` unless `model(size, seed)` makes another with `fit` and `predict`; or `model` is a
    list of estimators, one for each size, whose seeds are set if they have one. Errors are squared errors, for
    classifiers fractions of wrong labels. `threshold` is the size that just fits the rows: by default, their number.

    >>> rng = np.random.default_rng(0)
    >>> X, new = rng.normal(size=(20, 3)), rng.normal(size=(100, 3))
    >>> curve = double_descent(X, X[:, 0] + rng.normal(size=20), new, new[:, 0], sizes=[5, 20, 400])
    >>> curve.peak, curve.threshold
    (20, 20.0)
    """
    wanted = tuple(sizes)
    if len(wanted) < 2 or list(wanted) != sorted(set(wanted)):
        raise SpecError(f"sizes={list(wanted)} must be two or more numbers, each larger than the one before.")
    if repeats < 1:
        raise SpecError(f"repeats={repeats!r} must be a number of fits, 1 or more.")
    make = _maker(model, wanted)
    labels = False
    errors = np.empty((2, len(wanted), repeats))
    seeds = np.random.SeedSequence(random_state).generate_state(repeats)
    for repeat, seed in enumerate(seeds):
        for place, size in enumerate(wanted):
            fitted = make(size, int(seed)).fit(X, y)
            labels = hasattr(fitted, "classes_")
            for part, (rows, target) in enumerate(((X, y), (X_test, y_test))):
                errors[part, place, repeat] = _error(fitted.predict(rows), target, labels)
    quartiles = np.quantile(errors[1], [0.25, 0.75], axis=-1)
    rows = float(len(np.asarray(y))) if threshold is None else float(threshold)
    measure = "fraction of wrong labels" if labels else "squared error"
    train, test = np.median(errors, axis=-1)
    return DoubleDescent(wanted, train, test, quartiles, rows, measure)


def gaussian_descent(size: int, rows: int, columns: int, signal: float = 1.0, noise: float = 0.0) -> float:
    """The expected squared error of least-norm least squares on `size` of `columns` standard normal columns.

    y = βᵀx + ε with ‖β‖² = `signal`, the same in every column, and Var ε = `noise`; `rows` rows to learn from.

    >>> [round(gaussian_descent(size, rows=20, columns=200, noise=0.5), 2) for size in (5, 18, 20, 22, 200)]
    [2.0, 26.79, inf, 29.2, 1.46]
    """
    if not 0 <= size <= columns or rows < 1:
        raise SpecError(f"size={size!r} must be between 0 and columns={columns!r}, and rows={rows!r} 1 or more.")
    if signal < 0 or noise < 0:
        raise SpecError(f"signal={signal!r} and noise={noise!r} are variances: 0 or more.")
    inside = signal * size / columns
    unexplained = signal - inside + noise
    if size == 0 or size <= rows - 2:
        return unexplained * (1 + size / max(1, rows - size - 1))
    if size >= rows + 2:
        return inside * (1 - rows / size) + unexplained * (1 + rows / (size - rows - 1))
    return math.inf if unexplained else inside * max(0.0, 1 - rows / size)


def _maker(model: Any, sizes: tuple[float, ...]) -> Callable[[float, int], Any]:
    if model is None:
        return lambda size, seed: RandomFeatures(int(size), random_state=seed)
    if callable(model):
        return model
    if len(model) != len(sizes):
        raise DataError(f"model has {len(model)} estimators, but there are {len(sizes)} sizes; each needs one.")
    known = dict(zip(sizes, model, strict=True))

    def seeded(size: float, seed: int) -> Any:
        fresh = clone(known[size])
        return fresh.set_params(random_state=seed) if "random_state" in fresh.get_params() else fresh

    return seeded


def _error(predicted: Any, target: Any, labels: bool) -> float:
    answers, wanted = np.asarray(predicted), np.asarray(target)
    if labels:
        return float(np.mean(answers != wanted))
    return float(np.mean((answers.reshape(wanted.shape) - wanted) ** 2))
