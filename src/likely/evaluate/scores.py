"""Proper scores of predictive distributions: no forecast beats the true distribution on average.

log score = mean log p(y | x)            CRPS = mean E|Y − y| − ½ E|Y − Y′|,   Y, Y′ ~ p(· | x)
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import ndtr
from torch.distributions import Categorical, Distribution, Normal

from ..core.errors import DataError, LikelyWarning
from ..core.random import isolated, seed_of
from ..models.labels import is_text, shown
from .protocol import as_array, has, missing, need, opened

__all__ = ["crps", "log_score", "log_scores"]


def log_score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """mean log p(y | x): higher is better. It is also a scorer: `cross_val_score(model, X, y, scoring=log_score)`.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.metrics import log_loss
    >>> X, y = np.array([[0.0], [0.5], [1.0], [1.5]]), np.array([0, 1, 0, 1])
    >>> model = GaussianNB().fit(X, y)
    >>> bool(np.isclose(log_score(model, X, y), -log_loss(y, model.predict_proba(X))))
    True
    """
    scores = log_scores(model, X, y)
    known = ~np.isnan(scores)
    if not known.any():
        raise DataError("y has no target to score: every one is missing.")
    weight = None if sample_weight is None else as_array(sample_weight)[known]
    return float(np.average(scores[known], weights=weight))


def log_scores(model: Any, X: Any, y: Any) -> np.ndarray:
    """log p(y | x) of each row, (n,); NaN where the target is missing, −∞ (and a warning) for a class never seen.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.array([[0.0], [0.5], [1.0], [1.5]]), np.array([0, 1, 0, 1])
    >>> log_scores(GaussianNB().fit(X, y), X, [0, 1, 0, 1]).shape
    (4,)
    """
    model, X = opened(model, X)
    need(model, ("log_prob", "predict_proba"), "The log score")
    target = as_array(y)
    gone = missing(model, target)
    unseen = _unseen(model, target, gone)
    if unseen.any():
        warnings.warn(
            f"y has the class {shown(np.unique(target[unseen]))}, which the model never saw in training: "
            f"{unseen.sum()} of the targets have probability 0 and score −∞.",
            LikelyWarning,
            stacklevel=2,
        )
        y = target = np.where(unseen, np.asarray(model.classes_)[0], target)  # a stand-in that the model can score
    scores = model.log_prob(X, y) if has(model, "log_prob") else _log_proba(model, X, target)
    scores = np.where(_by_row(unseen).any(1), -np.inf, np.asarray(scores, dtype=np.float64))
    return np.where(_by_row(gone).all(1), np.nan, scores)


def _by_row(marks: np.ndarray) -> np.ndarray:
    return marks.reshape(len(marks), -1)


def _unseen(model: Any, target: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Labels of the kind of the model's classes that are none of them; other kinds are for the model to refuse."""
    classes = getattr(model, "classes_", None)
    if classes is None or is_text(np.asarray(classes)) != is_text(target[~gone]):
        return np.zeros(target.shape, dtype=bool)
    return ~np.isin(target, np.asarray(classes)) & ~gone


def crps(model: Any, X: Any, y: Any, *, draws: int = 1000, random_state: Any = None) -> float:
    """The continuous ranked probability score, in the units of y; lower is better, |y − ŷ| for a certain forecast.

    Exact for normal forecasts; by `draws` for others, without bias.

    >>> from likely import Regressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> crps(Regressor().fit(X, [0, 1, 2, 3, 4, 6]), X, [0, 1, 2, 3, 4, 6]) < 0.5
    True
    """
    model, X = opened(model, X)
    need(model, ("predict_dist",), "The CRPS")
    forecast = model.predict_dist(X)
    target = as_array(y).astype(np.float64)
    if isinstance(forecast, Categorical) or forecast.event_shape:
        raise DataError(f"The CRPS needs forecasts of numbers; found {type(forecast).__name__}. Use log_score.")
    known = ~np.isnan(target)
    scores = _crps_normal(forecast, target) if isinstance(forecast, Normal) else None
    if scores is None:
        scores = _crps_drawn(forecast, target, draws, random_state)
    return float(scores[known].mean())


def _log_proba(model: Any, X: Any, target: np.ndarray) -> np.ndarray:
    """log of the probability that a scikit-learn classifier gives to each label."""
    chance, classes = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
    if chance.ndim != 2 or target.ndim != 1:
        raise DataError(f"{type(model).__name__} predicts several outputs; the log score takes one label per row.")
    hits = target[:, None] == classes[None, :]
    with np.errstate(divide="ignore"):
        return np.log((chance * hits).sum(1))


def _crps_normal(forecast: Normal, target: np.ndarray) -> np.ndarray:
    scale = as_array(forecast.scale).astype(np.float64)
    z = (target - as_array(forecast.loc)) / scale
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return scale * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))


def _crps_drawn(forecast: Distribution, target: np.ndarray, draws: int, random_state: Any) -> np.ndarray:
    if draws < 2:
        raise DataError(f"draws must be 2 or more; found {draws!r}.")
    with isolated(seed_of(random_state)):
        sample = np.sort(as_array(forecast.sample((draws,))).astype(np.float64), axis=0)
    # Sorted, the mean distance of two different draws is a weighted sum of them.
    ranks = (2 * np.arange(1, draws + 1) - draws - 1).reshape(-1, *(1 for _ in target.shape))
    between = 2 * (ranks * sample).sum(0) / (draws * (draws - 1))
    return np.abs(sample - target).mean(0) - 0.5 * between
