"""Calibration: do events that get probability p happen a fraction p of the time?

classes    fraction of hits among rows with confidence near p, against p;   ECE = Σ_b (n_b / n) |hits_b − confidence_b|
numbers    u = F(y | x), the probability integral transform, is uniform if F is right
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import kstest
from torch import Tensor

from ..core.errors import DataError
from ..probability.quantiles import cdf
from .protocol import as_array, missing, need, opened
from .result import Result

__all__ = ["PIT", "Reliability", "calibration"]


@dataclass(frozen=True)
class Reliability(Result):
    """For each bin with rows in it: mean confidence, fraction of hits, and the standard error of that if calibrated."""

    confidence: np.ndarray
    frequency: np.ndarray
    standard_error: np.ndarray
    count: np.ndarray
    expected_calibration_error: float

    def __str__(self) -> str:
        return f"expected calibration error {self.expected_calibration_error:.3f} over {self.count.sum()} predictions"


@dataclass(frozen=True)
class PIT(Result):
    """u = F(y | x) of each target, and the Kolmogorov-Smirnov distance of their distribution to the uniform."""

    values: np.ndarray
    distance: float
    p_value: float

    def __str__(self) -> str:
        return f"PIT of {len(self.values)} targets: distance to uniform {self.distance:.3f} (p = {self.p_value:.2g})"


def calibration(
    model: Any, X: Any, y: Any, *, bins: int = 10, label: Any = None, random_state: Any = 0
) -> Reliability | PIT:
    """The reliability of a classifier's probabilities, or the PIT of a regressor's distributions.

    `bins` and `label` are for classifiers: confidences are those of the predicted class, or, with `label`, of that
    class. For counts, u is drawn between F(y − 1) and F(y) with `random_state`, which keeps it uniform.

    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((4, 1)), np.array([0, 1, 0, 1])
    >>> print(calibration(DummyClassifier(strategy="prior").fit(X, y), X, y))  # says ½, is right half the time
    expected calibration error 0.000 over 4 predictions
    """
    model, X = opened(model, X)
    need(model, ("predict_proba", "predict_dist"), "Calibration")
    target = as_array(y)
    known = ~missing(model, target)
    if not known.any():
        raise DataError("y has no target to compare with: every one is missing.")
    if hasattr(model, "predict_proba"):
        return _reliability(model, X, target, known, bins, label)
    return _pit(model, X, target.astype(np.float64), known, random_state)


def _reliability(model: Any, X: Any, target: np.ndarray, known: np.ndarray, bins: int, label: Any) -> Reliability:
    if bins < 1:
        raise DataError(f"bins must be 1 or more; found {bins!r}.")
    chance, classes = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
    if chance.shape[:-1] != target.shape:
        raise DataError(f"y has shape {target.shape}; the probabilities are for {chance.shape[:-1]}.")
    if label is None:
        best = chance.argmax(-1)
        confidence, hit = chance.max(-1)[known], (classes[best] == target)[known]
    elif label in classes:
        confidence, hit = chance[..., classes.tolist().index(label)][known], (target == label)[known]
    else:
        raise DataError(f"label={label!r} is not a class of the model; it has {classes.tolist()}.")
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    used = count > 0

    def per_bin(values: np.ndarray) -> np.ndarray:
        return np.bincount(bin_of, weights=values, minlength=bins)[used]

    count = count[used]
    expected, frequency = per_bin(confidence) / count, per_bin(hit) / count
    error = np.sqrt(per_bin(confidence * (1 - confidence))) / count
    gap = float((count * np.abs(frequency - expected)).sum() / count.sum())
    return Reliability(expected, frequency, error, count, gap)


def _pit(model: Any, X: Any, target: np.ndarray, known: np.ndarray, random_state: Any) -> PIT:
    forecast = model.predict_dist(X)
    if forecast.event_shape:
        raise DataError("The PIT needs one number per target; for vectors look at one coordinate at a time.")
    value = torch.as_tensor(np.where(known, target, 1.0), dtype=_dtype(forecast))
    with torch.no_grad():
        upper = as_array(cdf(forecast, value)).astype(np.float64)
        if forecast.support.is_discrete:
            mass = as_array(forecast.log_prob(value).exp()).astype(np.float64)
            upper = upper - np.random.default_rng(random_state).uniform(size=upper.shape) * mass
    values = np.clip(upper[known], 0, 1)
    test = kstest(values, "uniform")
    return PIT(values, float(test.statistic), float(test.pvalue))


def _dtype(forecast: Any) -> torch.dtype:
    mean: Tensor = forecast.mean
    return mean.dtype
