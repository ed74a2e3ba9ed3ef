"""Models that tell scores of their rows, as what is attacked: processes, kernel machines, naive Bayes, the perceptron.

Classes are compared by the margin itself: it has a gradient also where probabilities are 0 and 1 to the last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..models.kernel.kernel_machine import numbers_of
from ..models.kernel.votes import against, decision
from ..models.labels import as_column, encode_labels, read_labels
from ..models.scored import Scored
from ..models.supervised.base import as_array
from .victim import Labelled, Numbers, Scoring

__all__ = ["scored_victim"]


class _Scored(Scoring):
    """What models of labels and of numbers share."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def read(self, X: Any) -> Tensor:
        x = self.model._points(X)
        self.span, self.work = self.model._span, self.model._work * min(len(x), self.rows)
        self.linear = self.model._affine
        return x

    def scores(self, x: Tensor) -> Tensor:
        return self.model._scores(x)

    def answers(self, X: Any) -> np.ndarray:
        return self.model.predict(X)


class _Classes(_Scored, Labelled):
    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        labels = self.model.predict(X) if y is None else y
        labels, missing = as_column(*read_labels(labels, type(self.model).__name__, rows=len(x)))
        if missing.any():
            raise DataError(f"y has no label at row {int(missing.argmax())}; an attack needs one for each row.")
        return torch.from_numpy(encode_labels(labels, missing, self.model.classes_)).long()

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        return answers != self.model.classes_[as_array(y)]

    def judged(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return Scoring.judged(self, scores, y)


class _Pairs(_Classes):
    """Classes that win by most votes of pairs.

    The margin of class k is f(k against y). Where k beats y and y still has as many votes, it is how far the nearest
    other vote is from going to k, or away from y.
    """

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.model.classes_)

    def read(self, X: Any) -> Tensor:
        x = super().read(X)
        self.linear = self.linear and self.classes == 2
        return x

    def labels(self, x: Tensor) -> Tensor:
        return decision(self.scores(x), self.classes).argmax(1)

    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        rows, values = torch.arange(len(y), device=y.device), decision(scores, self.classes)
        lead = values - values[rows, y].unsqueeze(1)
        won = against(scores, self.classes)  # (n, k, j)
        duel = won[rows, :, y]
        itself = torch.eye(self.classes, dtype=torch.bool)
        gains = won.masked_fill(itself | (won > 0), -torch.inf).amax(2)
        losses = won[rows, y].neg().masked_fill(itself[y] | (won[rows, y] < 0), -torch.inf)
        other = losses.amax(1, keepdim=True)
        behind = torch.where(duel > 0, torch.maximum(gains, other), duel)
        ahead = torch.where(duel > 0, duel, lead)
        return torch.where(lead > 0, ahead, behind).masked_fill(itself[y], -torch.inf)


class _Means(_Scored, Numbers):
    def __init__(self, model: Any, threshold: Any) -> None:
        super().__init__(model)
        self.threshold = threshold

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        own = self.model.predict(X) if y is None else numbers_of(y, len(x), type(self.model).__name__)
        given = torch.tensor(own).reshape(len(x), -1)
        width = self.scores(x[:1]).shape[1]
        if given.shape[1] != width:
            raise DataError(f"y has shape {own.shape}; the model answers {width} numbers for each row.")
        if self.threshold is None and not hasattr(self.model, "predict_dist"):
            raise SpecError(
                f"A {type(self.model).__name__} does not say how far off its predictions may be; give a threshold in "
                "the units of y."
            )
        return self.with_thresholds(given, lambda: self.model.predict_dist(X))


def scored_victim(model: Scored, threshold: Any) -> Scoring:
    """What is attacked of a model: its labels, or its mean.

    >>> from likely import KernelRidge
    >>> scored_victim(KernelRidge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]), 0.5).read([[0.5]])
    tensor([[0.5000]], dtype=torch.float64)
    """
    check_is_fitted(model)
    if model._score == "mean":
        return _Means(model, threshold)
    return _Pairs(model) if model._score == "pairs" else _Classes(model)
