"""The generalisation gap: how much better a model does on the data it was fitted to than on new data.

gap = mean log p(y | x) on training rows − mean log p(y | x) on test rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .result import Result, plus_minus
from .scores import log_scores
from .validation import RowScore

__all__ = ["Gap", "generalisation_gap"]


@dataclass(frozen=True)
class Gap(Result):
    """The scores on training and test rows, their difference, and the standard error of that over rows."""

    train: float
    test: float
    gap: float
    standard_error: float

    def __str__(self) -> str:
        return f"train {self.train:.4g}, test {self.test:.4g}, gap {plus_minus(self.gap, self.standard_error)}"


def generalisation_gap(
    model: Any, X_train: Any, y_train: Any, X_test: Any, y_test: Any, *, score: RowScore = log_scores
) -> Gap:
    """The gap of a fitted model; above 0 it overfits. `score(model, X, y)` gives one number per row, larger is better.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.array([[0.0], [0.5], [1.0], [1.5]]), np.array([0, 1, 0, 1])
    >>> generalisation_gap(GaussianNB().fit(X, y), X, y, X, y).gap
    0.0
    """
    train, test = (_known(score(model, X, y)) for X, y in ((X_train, y_train), (X_test, y_test)))
    gap = float(train.mean() - test.mean())
    with np.errstate(invalid="ignore"):  # an impossible row scores −∞, and then the spread is undefined
        error = float(np.sqrt(train.var() / len(train) + test.var() / len(test)))
    return Gap(float(train.mean()), float(test.mean()), gap, error)


def _known(scores: np.ndarray) -> np.ndarray:
    return scores[~np.isnan(scores)]
