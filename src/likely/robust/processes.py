"""A fitted Gaussian process as what is attacked: gradients go through its kernel to the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..core.errors import DataError
from ..models import GaussianProcess
from ..models.supervised.base import as_array
from .victim import Labelled, Numbers, Victim

__all__ = ["process_victim"]


class _Process(Victim):
    """What processes of labels and of numbers share."""

    def __init__(self, model: GaussianProcess) -> None:
        self.model = model

    def read(self, X: Any) -> Tensor:
        x = self.model._rows(X)
        self.span = float(self.model.X_train_.min()), float(self.model.X_train_.max())
        self.work = float(min(len(x), self.rows)) * self.model._size**2
        return x

    def scores(self, x: Tensor) -> Tensor:
        return self.model._scores(x)

    def answers(self, X: Any) -> np.ndarray:
        return self.model.predict(X)


class _LabelledProcess(Labelled, _Process):
    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        targets = self.model._targets(X, self.model.predict(X) if y is None else y)
        missing = targets.isnan().nonzero()
        if len(missing):
            raise DataError(f"y has no label at row {int(missing[0, 0])}; an attack needs one for each row.")
        return targets.long()

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        return answers != self.model.classes_[as_array(y)]


class _NumberProcess(Numbers, _Process):
    def __init__(self, model: GaussianProcess, threshold: Any) -> None:
        super().__init__(model)
        self.threshold = threshold

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        own = torch.from_numpy(self.model.predict(X)) if y is None else self.model._targets(X, y)
        return self.with_thresholds(own.reshape(len(x), -1), lambda: self.model.predict_dist(X))


def process_victim(model: GaussianProcess, threshold: Any) -> Victim:
    """What is attacked of a process: its labels, or its mean.

    >>> model = GaussianProcess().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> process_victim(model, 0.5).read([[0.5]])
    tensor([[0.5000]], dtype=torch.float64)
    """
    check_is_fitted(model)
    return _LabelledProcess(model) if hasattr(model, "predict_proba") else _NumberProcess(model, threshold)
