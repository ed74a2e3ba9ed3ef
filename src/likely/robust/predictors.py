"""Classifiers that are asked through `predict` alone: all that a certificate by noise needs of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..core.errors import DataError, SpecError
from ..core.quiet import quiet
from ..data.table import Table
from ..models import Classifier, GaussianProcess, Regressor, TableModel
from ..models.supervised.base import as_array
from .forms import as_numbers, like
from .victim import Scoring
from .victims import scoring_of

__all__ = ["Predicting", "answering"]


class Predicting:
    """Any fitted classifier with `classes_`, of ours or of scikit-learn's, alone or at the end of a pipeline."""

    work = float("inf")

    def __init__(self, model: Any) -> None:
        check_is_fitted(model)
        if isinstance(model.classes_, list):
            raise SpecError(f"The {type(model).__name__} answers several labels per row; certify takes one.")
        self.model, self.classes = model, np.asarray(model.classes_)

    def read(self, X: Any) -> Tensor:
        """Rows of finite numbers, (n, …)."""
        numbers = as_numbers(X)
        if numbers is None or numbers.ndim < 2 or not len(numbers) or not np.isfinite(numbers).all():
            kind = type(X).__name__ if numbers is None else f"shape {numbers.shape}"
            raise DataError(f"X must have rows (n, …) of finite numbers; found {kind}.{self._encoded()}")
        self.X = X
        return torch.from_numpy(numbers.astype(float))

    def _encoded(self) -> str:
        """The call for the columns of a table that are not numbers, or have gaps."""
        if not isinstance(self.model, TableModel) or not isinstance(self.model.table_, Table):
            return ""
        return (
            " Noise can be added to what the columns of a table become: certify(model.model_, "
            "model.table_.transform(X), sigma), with sigma in units of the encoded columns."
        )

    def labels(self, x: Tensor) -> Tensor:
        """The place of the answer among the classes for each row, (n,)."""
        with quiet(UserWarning, "X does not have valid feature names"):
            answers = np.asarray(self.model.predict(like(self.X, as_array(x))))
        return torch.from_numpy((answers[:, None] == self.classes).argmax(1))


def answering(model: Any) -> Scoring | Predicting:
    """What answers for a classifier; a model that is none is refused.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = answering(DecisionTreeClassifier().fit([[0.0], [1.0]], ["a", "b"]))
    >>> model.labels(model.read([[0.9], [0.1]]))
    tensor([1, 0])
    """
    if isinstance(model, Regressor) or (isinstance(model, GaussianProcess) and not is_classifier(model)):
        raise SpecError("certify takes a classifier: numbers have no most probable answer.")
    if isinstance(model, Classifier | GaussianProcess | nn.Module) or not hasattr(model, "predict"):
        return scoring_of(model)
    if not is_classifier(model):
        raise SpecError(
            f"model is a {type(model).__name__}; certify takes a fitted classifier with predict, or a function from "
            "rows (n, …) to logits (n, classes)."
        )
    return Predicting(model)
