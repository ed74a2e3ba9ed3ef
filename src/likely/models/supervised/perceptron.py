"""Perceptron: the mistake-driven linear classifier.

    on a mistake, y·(w·x + b) ≤ 0:   w ← w + y·x,   b ← b + y       (y = ±1)

On separable data it stops after at most R²/γ² mistakes, with R = max‖x̃‖ and γ the largest margin (x̃ = [x, 1] with an
intercept).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.errors import ConvergenceWarning, DataError, SpecError
from ...core.estimator import Estimator
from ...core.random import seed_of
from ...core.validation import as_rows
from ..labels import (
    as_column,
    encode_labels,
    read_labels,
    restore_classes,
    shown,
    state_of_classes,
)

__all__ = ["Perceptron"]


class Perceptron(ClassifierMixin, Estimator):
    """Two classes, one hyperplane. Reports its `mistakes_` and the geometric `margin_` min y(w·x + b)/‖w‖.

    It knows no probabilities; for those, use `Classifier`. Data that cannot be separated never ends: after `max_iter`
    passes the weights averaged over all passes are kept (the averaged perceptron), with a warning.

    >>> model = Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [3.5]])
    array(['a', 'b'], dtype='<U1')
    >>> bool(model.margin_ > 0)
    True
    """

    def __init__(
        self, max_iter: int = 1000, fit_intercept: bool = True, shuffle: bool = True, random_state: Any = None
    ) -> None:
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Pass over the rows until none is a mistake. A row without a label (NaN, None) does not count."""
        self.__dict__.pop("coef_", None)  # a fit that fails leaves no model of other data behind
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise SpecError(f"Perceptron(max_iter={self.max_iter!r}): max_iter must be a positive whole number.")
        rows = self._rows(X, reset=True)
        labels, missing = as_column(*read_labels(y, "Perceptron", rows=len(rows)))
        if labels.ndim != 1:
            raise DataError(f"y has shape {labels.shape}; Perceptron needs one label a row: (n,).")
        self.classes_ = np.unique(labels[~missing])
        if len(self.classes_) != 2:
            count = len(self.classes_)
            found = f"only one class ({shown(self.classes_)})" if count == 1 else f"{count} classes"
            raise DataError(
                f"Only binary classification is supported by Perceptron: y has {found}; for more use Classifier."
            )
        sign = 2 * encode_labels(labels, missing, self.classes_) - 1  # NaN where missing
        x = rows.double().numpy()[~missing]
        x = np.column_stack([x, np.ones(len(x))]) if self.fit_intercept else x
        self._run(x, sign[~missing])
        return self

    def _run(self, x: np.ndarray, sign: np.ndarray) -> None:
        random = np.random.default_rng(seed_of(self.random_state))
        theta, total, self.mistakes_ = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0
        signed = x * sign[:, None]
        for passes in range(1, self.max_iter + 1):
            before = self.mistakes_
            for row in random.permutation(len(x)) if self.shuffle else range(len(x)):
                if signed[row] @ theta <= 0:
                    theta = theta + signed[row]
                    self.mistakes_ += 1
            total += theta
            self.n_iter_ = passes
            if self.mistakes_ == before:
                break
        else:
            theta = total / self.max_iter
            warnings.warn(
                f"Some rows are still mistakes after max_iter={self.max_iter} passes, so the classes may not be "
                "separable; the average of all passes is kept. Raise max_iter, or use Classifier.",
                ConvergenceWarning,
                stacklevel=3,
            )
        weights = theta[:-1] if self.fit_intercept else theta
        self.coef_ = weights.reshape(1, -1)
        self.intercept_ = theta[-1:] if self.fit_intercept else np.zeros(1)
        size = np.linalg.norm(weights)
        self.margin_ = float((signed @ theta).min() / size) if size > 0 else 0.0

    def decision_function(self, X: Any) -> np.ndarray:
        """w·x + b of each row: positive for the second class."""
        check_is_fitted(self)
        x = self._rows(X, reset=False)
        return (x.double().numpy() @ self.coef_.T + self.intercept_)[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """The class on whose side of the hyperplane each row lies."""
        side = (self.decision_function(X) > 0).astype(int)
        return self.classes_[side]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _rows(self, X: Any, *, reset: bool) -> Tensor:
        rows = as_rows(self, X, reset=reset)
        if rows.ndim != 2:
            raise DataError(f"X has shape {tuple(rows.shape)}; Perceptron needs one vector for each row: (n, d).")
        return rows

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        names = getattr(self, "feature_names_in_", None)
        learned = {
            **state_of_classes(self.classes_),
            "n_features_in": int(self.n_features_in_),
            "feature_names_in": None if names is None else [str(name) for name in names],
            "mistakes": self.mistakes_,
            "n_iter": self.n_iter_,
            "margin": self.margin_,
        }
        return learned, {"coef": torch.from_numpy(self.coef_), "intercept": torch.from_numpy(self.intercept_)}

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.classes_ = restore_classes(learned)
        self.n_features_in_ = int(learned["n_features_in"])
        if learned["feature_names_in"] is not None:
            self.feature_names_in_ = np.array(learned["feature_names_in"], dtype=object)
        self.mistakes_, self.n_iter_ = int(learned["mistakes"]), int(learned["n_iter"])
        self.margin_ = float(learned["margin"])
        self.coef_ = tensors["coef"].numpy().reshape(1, self.n_features_in_)
        self.intercept_ = tensors["intercept"].numpy().reshape(1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
