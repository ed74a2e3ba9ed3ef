"""Cross-validation by rows: every row is scored once by a model that did not see it.

score = mean over rows of log p(yᵢ | xᵢ, the folds without i),   with the standard error s/√n over rows
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.multiclass import type_of_target

from ..core.errors import DataError, TrainingError
from .protocol import as_array, missing, take
from .result import Result, plus_minus
from .scores import log_scores

__all__ = ["CrossValidation", "Folds", "RowScore", "cross_validate", "folds_of"]

Folds = list[tuple[np.ndarray, np.ndarray]]
RowScore = Callable[[Any, Any, Any], np.ndarray]
"""`score(fitted model, X, y)` → one number per row, larger is better."""


@dataclass(frozen=True)
class CrossValidation(Result):
    """The mean score with its standard error over rows, seconds per fit, other metrics, and the score of each row.

    `rows` is in the order of the rows of X: `rows[i]` is the score of row `index[i]`, and `index` is 0, 1, …, n − 1
    where the folds hold every row out once. A splitter may hold a row out several times, or never.
    """

    score: float
    standard_error: float
    seconds: float
    metrics: dict[str, float]
    rows: np.ndarray
    index: np.ndarray

    def __str__(self) -> str:
        return f"{plus_minus(self.score, self.standard_error)} over {len(self.rows)} rows, {self.seconds:.3g} s per fit"


def cross_validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    score: RowScore = log_scores,
    metrics: Mapping[str, Callable[[Any, Any], float]] | None = None,
    random_state: Any = None,
) -> CrossValidation:
    """Fit on all folds but one, score the one, in turn.

    `cv` is a number of folds (shuffled; stratified for classifiers), a scikit-learn splitter or a list of (train, test)
    row indices. `metrics` are functions of (actual, predicted), such as `{"rmse": rmse}`, taken over all held-out rows.

    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((40, 1)), np.arange(40) % 2
    >>> result = cross_validate(DummyClassifier(strategy="prior"), X, y, random_state=0)
    >>> round(result.score, 4)  # −log 2: a coin
    -0.6931
    """
    folds = folds_of(cv, X, y, classifier=is_classifier(model), random_state=random_state)
    return run(model, X, y, folds, score, metrics or {})


def folds_of(cv: Any, X: Any, y: Any, *, classifier: bool, random_state: Any) -> Folds:
    """The row indices (train, test) of each fold."""
    if isinstance(cv, int | np.integer):
        if not 2 <= cv <= len(y):
            raise DataError(f"cv must be from 2 folds to one per row ({len(y)}); found {cv}.")
        stratified = classifier and type_of_target(as_array(y)) in ("binary", "multiclass")
        kind = StratifiedKFold if stratified else KFold
        cv = kind(n_splits=int(cv), shuffle=True, random_state=random_state)
    pairs = cv.split(np.empty((len(y), 1)), as_array(y)) if hasattr(cv, "split") else cv
    return [(_numbers(train, len(y)), _numbers(test, len(y))) for train, test in pairs]


def _numbers(rows: Any, count: int) -> np.ndarray:
    """Row indices, also where a fold is given as a mask."""
    index = np.asarray(rows)
    return np.flatnonzero(index) if index.dtype == bool else np.arange(count)[index]


def run(
    model: Any, X: Any, y: Any, folds: Folds, score: RowScore, metrics: Mapping[str, Callable[[Any, Any], float]]
) -> CrossValidation:
    """Cross-validation over given folds."""
    rows, seconds, actual, predicted = [], [], [], []
    for number, (train, test) in enumerate(folds):
        fitted = clone(model)
        start = time.perf_counter()
        fitted.fit(take(X, train), take(y, train))
        seconds.append(time.perf_counter() - start)
        X_test, y_test = take(X, test), take(y, test)
        scores = np.asarray(score(fitted, X_test, y_test), dtype=np.float64)
        held_out = as_array(y_test)
        if scores.shape != (len(test),):
            raise DataError(f"score must give one number per row, ({len(test)},); found shape {scores.shape}.")
        known = ~missing(fitted, held_out).reshape(len(test), -1).all(1)
        if np.isnan(scores[known]).any():
            raise TrainingError(f"the score is NaN in fold {number + 1}")
        rows.append(np.where(known, scores, np.nan))
        if metrics:
            actual.append(held_out[known])
            predicted.append(as_array(fitted.predict(X_test))[known])
    held = np.concatenate([test for _, test in folds])
    order = held.argsort(kind="stable")
    by_row = np.concatenate(rows)[order]
    mean, error = mean_and_error(by_row)
    values = {name: float(f(np.concatenate(actual), np.concatenate(predicted))) for name, f in metrics.items()}
    return CrossValidation(mean, error, float(np.mean(seconds)), values, by_row, held[order])


def mean_and_error(rows: np.ndarray) -> tuple[float, float]:
    """The mean over the rows that have a target, and s/√n; NaN for the error where a row scores −∞."""
    known = rows[~np.isnan(rows)]
    if not len(known):
        raise DataError("y has no target to score: every one is missing.")
    if not np.isfinite(known).all() or len(known) < 2:
        return float(known.mean()), float("nan")
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(len(known)))
