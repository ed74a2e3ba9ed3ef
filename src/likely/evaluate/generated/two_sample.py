"""The classifier test: can a classifier tell generated rows from real ones?

    accuracy = ½ if the two distributions are equal,      1 if they do not overlap

One half of the rows teaches the classifier, the other half asks it. If the distributions are equal, labels are
exchangeable given the rows: the number of right answers has a known (hypergeometric) law, which gives the p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import hypergeom
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from ...core.random import seed_of
from ..result import Result
from .pairs import pair_of

__all__ = ["TwoSample", "two_sample"]

FEWEST_LEVELS = 255
"""Labels with more levels are read as numbers by the boosted trees."""


@dataclass(frozen=True)
class TwoSample(Result):
    """How often the classifier was right, the standard error of that if both are equal, and the p-value."""

    accuracy: float
    standard_error: float
    p_value: float
    count: int
    """Rows that were asked about, half of them real."""

    def __str__(self) -> str:
        return (
            f"a classifier is right in {self.accuracy:.1%} of {self.count} rows (50 % ± {self.standard_error:.1%} "
            f"if there is no difference), p = {self.p_value:.2g}"
        )


def two_sample(real: Any, generated: Any, *, classifier: Any = None, random_state: Any = 0) -> TwoSample:
    """The classifier test of two samples, arrays or tables; as many rows are taken of each as the smaller one has.

    `classifier` is anything with `fit` and `predict`; boosted trees if none is given. Use held-out real rows: rows
    that the model was trained on answer another question.

    >>> rng = np.random.default_rng(0)
    >>> same = two_sample(rng.normal(size=(400, 2)), rng.normal(size=(400, 2)))
    >>> other = two_sample(rng.normal(size=(400, 2)), rng.normal(2, 1, size=(400, 2)))
    >>> same.p_value > 0.01, other.accuracy > 0.85
    (True, True)
    """
    pair = pair_of(real, generated)
    rng = np.random.default_rng(seed_of(random_state))
    size = min(len(pair.real), len(pair.generated))
    halves = [rng.permutation(len(rows))[:size] for rows in (pair.real, pair.generated)]
    taught = size // 2
    x = [np.concatenate([pair.real[halves[0][part]], pair.generated[halves[1][part]]]) for part in _parts(taught, size)]
    y = [np.repeat([0, 1], len(rows) // 2) for rows in x]
    judge = _boosted(pair.labels, x[0], int(rng.integers(2**31))) if classifier is None else clone(classifier)
    answers = np.asarray(judge.fit(x[0], y[0]).predict(x[1]))
    return _judged(answers == 1, y[1] == 1)


def _parts(taught: int, size: int) -> tuple[slice, slice]:
    return slice(0, taught), slice(taught, size)


def _judged(said: np.ndarray, true: np.ndarray) -> TwoSample:
    """The exact null: which rows are generated is a random draw of so many, given how many were called so."""
    count, positives, called = len(true), int(true.sum()), int(said.sum())
    hits = int((said & true).sum())
    right = hits + (count - positives) - (called - hits)
    spread = 2 * hypergeom.std(count, positives, called)  # each hit more is two right answers more
    p_value = hypergeom.sf(hits - 1, count, positives, called)
    return TwoSample(right / count, float(spread) / count, float(p_value), count)


def _boosted(labels: np.ndarray, x: np.ndarray, seed: int) -> HistGradientBoostingClassifier:
    few = np.array([len(np.unique(column[~np.isnan(column)])) <= FEWEST_LEVELS for column in x.T])
    return HistGradientBoostingClassifier(categorical_features=labels & few, random_state=seed)
