"""Point metrics, in one naming: `metric(actual, predicted)`, or `metric(actual, probabilities)`. scikit-learn computes.

rmse = √ mean (y − ŷ)²      precision = TP / (TP + FP)     recall = TP / (TP + FN)
perplexity = exp(−mean log p(y))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics

from ..core.errors import DataError
from ..core.takes import rows_of
from ..models.labels import missing_among
from .protocol import as_array

__all__ = [
    "accuracy",
    "brier",
    "confusion_matrix",
    "f1",
    "log_loss",
    "mae",
    "perplexity",
    "precision",
    "r2",
    "recall",
    "rmse",
    "roc_auc",
]

Average = Literal["macro", "micro", "weighted", "binary"] | None


def rmse(actual: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """√ mean (y − ŷ)², in the units of y.

    >>> rmse([0.0, 0.0], [3.0, -3.0])
    3.0
    """
    rows_of("rmse", "predict(X)", actual=actual, predicted=predicted)
    return float(metrics.root_mean_squared_error(actual, predicted, sample_weight=sample_weight))


def mae(actual: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """mean |y − ŷ|, in the units of y.

    >>> mae([0.0, 0.0], [3.0, -1.0])
    2.0
    """
    rows_of("mae", "predict(X)", actual=actual, predicted=predicted)
    return float(metrics.mean_absolute_error(actual, predicted, sample_weight=sample_weight))


def r2(actual: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """1 − Σ(y − ŷ)² / Σ(y − ȳ)²: the part of the variance that is explained; 0 for the mean, 1 for perfection.

    >>> r2([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    0.0
    """
    rows_of("r2", "predict(X)", actual=actual, predicted=predicted)
    return float(metrics.r2_score(actual, predicted, sample_weight=sample_weight))


def accuracy(actual: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """The part of labels that are right.

    >>> accuracy(["a", "b", "b", "a"], ["a", "b", "a", "a"])
    0.75
    """
    rows_of("accuracy", "predict(X)", actual=actual, predicted=predicted)
    return float(metrics.accuracy_score(actual, predicted, sample_weight=sample_weight))


def confusion_matrix(actual: ArrayLike, predicted: ArrayLike, labels: ArrayLike | None = None) -> np.ndarray:
    """How often each actual class (row) was predicted as each class (column).

    >>> confusion_matrix([0, 0, 0, 1], [0, 0, 1, 1]).tolist()
    [[2, 1], [0, 1]]
    """
    rows_of("confusion_matrix", "predict(X)", actual=actual, predicted=predicted)
    return metrics.confusion_matrix(actual, predicted, labels=labels)


def precision(actual: ArrayLike, predicted: ArrayLike, average: Average = "macro", **options: Any) -> Any:
    """TP / (TP + FP), the mean over classes; `average=None` gives one number per class. 0 for a class never predicted.

    >>> precision([0, 0, 0, 1], [0, 0, 1, 1])
    0.75
    """
    rows_of("precision", "predict(X)", actual=actual, predicted=predicted)
    return _plain(metrics.precision_score(actual, predicted, average=average, **{"zero_division": 0.0} | options))


def recall(actual: ArrayLike, predicted: ArrayLike, average: Average = "macro", **options: Any) -> Any:
    """TP / (TP + FN), the mean over classes; `average=None` gives one number per class.

    >>> recall([0, 0, 1, 1], [0, 1, 1, 1])
    0.75
    """
    rows_of("recall", "predict(X)", actual=actual, predicted=predicted)
    return _plain(metrics.recall_score(actual, predicted, average=average, **{"zero_division": 0.0} | options))


def f1(actual: ArrayLike, predicted: ArrayLike, average: Average = "macro", **options: Any) -> Any:
    """2·precision·recall / (precision + recall) of each class, then the mean over classes.

    >>> f1([0, 0, 1, 1], [0, 1, 0, 1])
    0.5
    """
    rows_of("f1", "predict(X)", actual=actual, predicted=predicted)
    return _plain(metrics.f1_score(actual, predicted, average=average, **{"zero_division": 0.0} | options))


def roc_auc(actual: ArrayLike, scores: ArrayLike, **options: Any) -> float:
    """P(a positive scores above a negative); for several classes the mean of one-versus-rest areas.

    `scores` is a vector for two classes, or the probabilities (n, classes).

    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    rows_of("roc_auc", "predict_proba(X)", actual=actual, scores=scores)
    scores = np.asarray(scores)
    if scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    return float(metrics.roc_auc_score(actual, scores, **{"multi_class": "ovr"} | options))


def brier(actual: ArrayLike, probabilities: ArrayLike, labels: Sequence[Any] | None = None) -> float:
    """The mean squared distance of the probabilities to what happened: (p − y)² for two classes, Σₖ(pₖ − 1[y=k])² else.

    `labels` are the classes of the columns, by default the sorted values of `actual`.

    >>> brier([0, 1], [0.0, 1.0]), brier([0, 1], [0.5, 0.5])
    (0.0, 0.25)
    """
    rows_of("brier", "predict_proba(X)", actual=actual, probabilities=probabilities)
    return float(metrics.brier_score_loss(actual, probabilities, labels=labels))


def log_loss(actual: ArrayLike, probabilities: ArrayLike, labels: Sequence[Any] | None = None) -> float:
    """−mean log p(y), the cross-entropy in nats.

    >>> round(log_loss([0, 1], [0.5, 0.5]), 4)
    0.6931
    """
    rows_of("log_loss", "predict_proba(X)", actual=actual, probabilities=probabilities)
    return float(metrics.log_loss(actual, probabilities, labels=labels))


def perplexity(
    actual: Any, probabilities: Any, labels: Sequence[Any] | None = None, *, missing_label: int | None = None
) -> float:
    """exp(−mean log p(y)): among how many equally likely outcomes a model as unsure would choose.

    `probabilities` is (…, V) for targets (…): rows, or rows of tokens. Targets are column indices, or `labels` name
    the columns. A target that equals `missing_label` does not count.

    >>> round(perplexity([0, 1, 2], np.full((3, 50), 1 / 50)), 6)  # uniform over V has perplexity V
    50.0
    """
    rows_of("perplexity", "predict_proba(X)", actual=actual, probabilities=probabilities)
    chance, target = as_array(probabilities), as_array(actual)
    if chance.shape[:-1] != target.shape:
        raise DataError(
            f"probabilities must have the shape of actual and one axis more; found {chance.shape} for {target.shape}."
        )
    known = ~missing_among(target, missing_label)
    if not known.any():
        raise DataError("actual has no target at all: every one is missing.")
    column = _columns(target[known], chance.shape[-1], labels)
    chosen = np.take_along_axis(chance[known], column[:, None], -1)[:, 0]
    with np.errstate(divide="ignore"):
        return float(np.exp(-np.log(chosen).mean()))


def _columns(target: np.ndarray, width: int, labels: Sequence[Any] | None) -> np.ndarray:
    """The column of each target."""
    if labels is not None:
        column_of = {label: column for column, label in enumerate(np.asarray(labels).tolist())}
        target = np.array([column_of.get(value, width) for value in target.tolist()])
    if target.dtype.kind not in "iub" or not 0 <= target.min() <= target.max() < width:
        known = f"one of the {width} labels" if labels is not None else f"a column from 0 to {width - 1}"
        raise DataError(
            f"actual must hold {known} everywhere; use labels= to name the columns, missing_label= to leave one out."
        )
    return target.astype(np.int64)


def _plain(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else float(value)
