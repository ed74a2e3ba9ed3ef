"""Inception score and Fréchet distance, with any fitted classifier of ours in place of the Inception network.

    IS  = exp( E KL( p(y | x) ‖ p(y) ) )                               1 … number of classes
    FID = ‖μ₁ − μ₂‖² + tr( Σ₁ + Σ₂ − 2 (Σ₁ Σ₂)^½ )                       of features, as if they were Gaussian

A Fréchet distance sees two moments of the features and nothing else: one Gaussian can beat a better model. Report it
beside `two_sample`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ...core.errors import DataError
from ..protocol import as_array, need, opened
from .pairs import pair_of

__all__ = ["frechet_distance", "inception_score"]


def inception_score(classifier: Any, generated: Any, *, splits: int = 1) -> Any:
    """exp E KL(p(y|x) ‖ p(y)): sure answers, spread over all classes. With `splits` the mean and deviation over parts.

    >>> from likely import Classifier
    >>> from likely.priors import Normal
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(-3, 1, (50, 1)), rng.normal(3, 1, (50, 1))]
    >>> digits = Classifier(prior=Normal(1.0)).fit(X, np.repeat([0, 1], 50))
    >>> bool(inception_score(digits, X) > 1.8), round(inception_score(digits, X[:50]), 1)
    (True, 1.0)
    """
    model, rows = opened(classifier, generated)
    need(model, ("predict_proba",), "The inception score")
    probabilities = np.asarray(model.predict_proba(rows), dtype=np.float64)
    if probabilities.ndim != 2:
        raise DataError(f"The classifier must give one distribution per row; it gave {probabilities.shape}.")
    if not 1 <= splits <= len(probabilities):
        raise DataError(f"splits={splits!r} must be from 1 to the number of rows, {len(probabilities)}.")
    scores = [_score(part) for part in np.array_split(probabilities, splits)]
    return scores[0] if splits == 1 else (float(np.mean(scores)), float(np.std(scores)))


def frechet_distance(real: Any, generated: Any, classifier: Any = None) -> float:
    """The Fréchet distance of the classifier's features (its log-odds), or of the rows themselves if there is none.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(2000, 2))
    >>> round(frechet_distance(rows, rows + [3.0, 0.0]), 6)
    9.0
    """
    if classifier is None:
        pair = pair_of(real, generated)
        first, second = pair.in_units() if pair.labels.any() else (pair.real, pair.generated)
    else:
        first, second = (_features(classifier, rows) for rows in (real, generated))
    if np.isnan(first).any() or np.isnan(second).any():
        raise DataError("The Fréchet distance needs rows without missing values.")
    means = [rows.mean(0) for rows in (first, second)]
    covariances = [np.cov(rows, rowvar=False).reshape(rows.shape[1], -1) for rows in (first, second)]
    return float(np.square(means[0] - means[1]).sum() + _bures(*covariances))


def _score(probabilities: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(probabilities) - np.log(probabilities.mean(0))
        divergence = np.where(probabilities > 0, probabilities * ratio, 0.0).sum(1)
    return math.exp(float(divergence.mean()))


def _features(classifier: Any, rows: Any) -> np.ndarray:
    """Centred log-probabilities of the classes: the last layer of a classifier, up to what the softmax ignores."""
    model, rows = opened(classifier, rows)
    need(model, ("predict_proba",), "The Fréchet distance")
    logs = np.log(np.clip(as_array(model.predict_proba(rows)).astype(np.float64), 1e-30, None))
    return logs - logs.mean(1, keepdims=True)


def _bures(first: np.ndarray, second: np.ndarray) -> float:
    """tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½), by symmetric eigenproblems alone: no complex numbers can appear."""
    values, vectors = eigh(first)
    root = vectors * np.sqrt(np.clip(values, 0, None)) @ vectors.T
    inner = eigh(root @ second @ root, eigvals_only=True)
    return float(np.trace(first) + np.trace(second) - 2 * np.sqrt(np.clip(inner, 0, None)).sum())
