"""Perceptron: the mistake-driven linear classifier.

    on a mistake, y·(w·x + b) ≤ 0:   w ← w + y·x,   b ← b + y       (y = ±1)

On separable data it stops after at most R²/γ² mistakes, with R = max‖x̃‖ and γ the largest margin (x̃ = [x, 1] with an
intercept).
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from torch import Tensor

from ...core.declared import COUNT, FLAG, NUMBER, Array, Arrays, Values, maybe
from ...core.draws import Refused
from ...core.errors import ConvergenceWarning, DataError, ModelFileError, SpecError
from ...core.random import seed_of
from ...core.validation import as_rows, as_weights
from ..labels import Labelled, as_column, encode_labels, read_labels, shown
from ..scored import Scored

__all__ = ["Perceptron"]


class Perceptron(ClassifierMixin, Scored, Labelled):
    """Two classes, one hyperplane. Reports its `mistakes_` and the geometric `margin_` min y(w·x + b)/‖w‖.

    It knows no probabilities; for those, use `Classifier`. Data that cannot be separated never ends: after `max_iter`
    passes the weights averaged over all passes are kept (the averaged perceptron), with a warning, and `converged_` is
    False.

    >>> model = Perceptron().fit([[0.0], [1.0], [3.0], [4.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [3.5]])
    array(['a', 'b'], dtype='<U1')
    >>> bool(model.margin_ > 0)
    True
    """

    _arrays: ClassVar[Arrays] = {"coef_": Array("1 D"), "intercept_": Array("1")}
    _values: ClassVar[Values] = {"mistakes_": COUNT, "n_iter_": COUNT, "converged_": maybe(FLAG), "margin_": NUMBER}

    log_prob = Refused("it knows on which side of a hyperplane a row lies, not how probably; use Classifier.")
    sample = Refused("it has no probabilities to draw labels by; use Classifier.")

    def __init__(
        self, max_iter: int = 1000, fit_intercept: bool = True, shuffle: bool = True, random_state: Any = None
    ) -> None:
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Pass over the rows until none is a mistake. A row without a label (NaN, None) does not count.

        A weight multiplies what a mistake on its row adds to w; a row of weight 0 is not there.
        """
        self._forget()
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise SpecError(f"Perceptron(max_iter={self.max_iter!r}): max_iter must be a positive integer.")
        rows = self._rows(X, reset=True)
        labels, missing = as_column(*read_labels(y, "Perceptron", rows=len(rows)))
        if labels.ndim != 1:
            raise DataError(f"y has shape {labels.shape}; Perceptron needs one label per row: (n,).")
        weight = as_weights(sample_weight, rows)
        used = ~missing if weight is None else ~missing & (weight.numpy() > 0)
        self.classes_ = np.unique(labels[used])
        if len(self.classes_) != 2:
            count = len(self.classes_)
            classes = f"only one class ({shown(self.classes_)})" if count == 1 else f"{count} classes"
            raise DataError(
                f"Only binary classification is supported by Perceptron: y has {classes}; for more use Classifier."
            )
        sign = 2 * encode_labels(labels, ~used, self.classes_) - 1  # NaN where not used
        x = rows.double().numpy()[used]
        x = np.column_stack([x, np.ones(len(x))]) if self.fit_intercept else x
        self._run(x, sign[used], np.ones(len(x)) if weight is None else weight.numpy()[used])
        return self

    def _run(self, x: np.ndarray, sign: np.ndarray, weight: np.ndarray) -> None:
        random = np.random.default_rng(seed_of(self.random_state))
        theta, total, self.mistakes_ = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0
        signed = x * sign[:, None]
        for passes in range(1, self.max_iter + 1):
            before = self.mistakes_
            for row in random.permutation(len(x)) if self.shuffle else range(len(x)):
                if signed[row] @ theta <= 0:
                    theta = theta + weight[row] * signed[row]
                    self.mistakes_ += 1
            total += theta
            self.n_iter_ = passes
            self.converged_ = self.mistakes_ == before
            if self.converged_:
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
        return self._scores(self._points(X)).numpy()[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """The class on whose side of the hyperplane each row lies."""
        side = (self.decision_function(X) > 0).astype(int)
        return self.classes_[side]

    @property
    def _score(self) -> Literal["pairs"]:
        return "pairs"

    def _points(self, X: Any) -> Tensor:
        self._check_fitted()
        return self._rows(X, reset=False).double()

    def _scores(self, x: Tensor) -> Tensor:
        return x @ torch.from_numpy(self.coef_.T.copy()) + torch.from_numpy(self.intercept_)

    @property
    def _affine(self) -> bool:
        return True

    def _rows(self, X: Any, *, reset: bool) -> Tensor:
        rows = as_rows(self, X, reset=reset)
        if rows.ndim != 2:
            raise DataError(f"X has shape {tuple(rows.shape)}; Perceptron needs one vector for each row: (n, d).")
        return rows

    def _check_learned(self) -> None:
        if len(self.classes_) != 2:
            raise ModelFileError(f"The file has {len(self.classes_)} classes; a Perceptron has two.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
