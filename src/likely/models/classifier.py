"""Classifier: targets are labels; the answer is the most probable class."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from ..core.errors import DataError, ModelFileError, SpecError
from ..core.spec import as_spec
from ..likelihoods import Bernoulli, Categorical, Likelihood, Target
from ..networks import Linear
from ..priors import Flat
from .supervised import Supervised

__all__ = ["Classifier"]


class Classifier(ClassifierMixin, Supervised):
    """p(y | x) for labels y: likelihood × network × prior × inference.

    The defaults are logistic regression (softmax regression for more than two classes). y is (n,) or (n, *positions):
    a label for each row, token or pixel. A missing label is NaN, None, or `missing_label` where the other labels are at
    least two whole numbers from 0 (so {−1, 1} are two classes).

    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "b", "a", "b", "b"]
    >>> model = Classifier().fit(X, y)
    >>> model.predict([[0.0], [5.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[2.5]]).round(3)
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        likelihood: Any = "auto",
        network: Any = Linear(),  # noqa: B008 (a frozen value)
        prior: Any = Flat(),  # noqa: B008
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
        missing_label: int | None = -1,
    ) -> None:
        self.likelihood = likelihood
        self.network = network
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.missing_label = missing_label

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row (and position)."""
        return self.classes_[self._probabilities(X).argmax(-1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class: (n, *positions, classes), in the order of `classes_`."""
        return self._probabilities(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self._probabilities(X))

    def _probabilities(self, X: Any) -> np.ndarray:
        distribution = self.predict_dist(X)
        probs = distribution.probs
        if isinstance(distribution, torch.distributions.Bernoulli):
            probs = torch.stack([1 - probs, probs], -1)
        return probs.numpy()

    def _likelihood(self) -> Likelihood:
        if isinstance(self.likelihood, str) and self.likelihood == "auto":
            return Bernoulli() if len(self.classes_) == 2 else Categorical()
        likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
        if not likelihood.labels:
            raise SpecError(f"likelihood={likelihood!r} describes numbers, not classes; use Regressor.")
        return likelihood

    def _target(self, likelihood: Likelihood, y: Tensor) -> Target:
        if isinstance(likelihood, Bernoulli) and len(self.classes_) > 2:
            raise DataError(f"y has {len(self.classes_)} classes; Bernoulli needs two. Use Categorical() or Ordinal().")
        return Target(classes=len(self.classes_))

    def _targets(self, y: Any, rows: int, *, reset: bool) -> Tensor:
        labels, missing = _labels(y, type(self).__name__, self.missing_label)
        if len(labels) != rows:
            raise DataError(f"y has {len(labels)} rows, but X has {rows}; inconsistent numbers of samples.")
        if labels.ndim == 2 and labels.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; it is read as one label a row.",
                DataConversionWarning,
                stacklevel=4,
            )
            labels, missing = labels[:, 0], missing[:, 0]
        if reset:
            self.classes_ = np.unique(labels[~missing])
            if len(self.classes_) < 2:
                found = f"only one class ({self.classes_[0]!r})" if len(self.classes_) else "no label at all"
                raise DataError(f"y has {found}; a classifier needs at least two classes.")
        elif tuple(labels.shape[1:]) != self.positions_:
            raise DataError(f"y has shape {labels.shape}; the model was fitted on labels (n, {self.positions_}).")
        index = np.searchsorted(self.classes_, np.where(missing, self.classes_[0], labels))
        index = np.minimum(index, len(self.classes_) - 1)
        unknown = (self.classes_[index] != labels) & ~missing
        if unknown.any():
            raise DataError(f"y has a class {labels[unknown][0]!r} that was not seen in fit; known: {list(self.classes_)}.")
        codes = torch.from_numpy(index.astype(np.float64))
        codes[torch.from_numpy(missing)] = torch.nan
        return codes

    def _decode(self, y: Tensor) -> np.ndarray:
        return self.classes_[y.long().numpy()]

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super()._state()
        kind = self.classes_.dtype.kind
        return learned | {"classes": self.classes_.tolist(), "classes_kind": "O" if kind == "O" else kind}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        kind = learned["classes_kind"]
        if kind not in ("O", "U", "i", "u", "f", "b"):
            raise ModelFileError(f"The file has classes of an unknown kind {kind!r}.")
        classes = np.array(learned["classes"], dtype=object if kind == "O" else None)
        self.classes_ = classes if kind in ("O", classes.dtype.kind) else classes.astype(kind)
        super()._restore(learned, tensors)


def _labels(y: Any, owner: str, missing_label: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels as an array, and which of them are missing."""
    if y is None:
        raise DataError(f"{owner} requires y to be passed, but the target y is None.")
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    labels = check_array(
        y, dtype=None, ensure_2d=False, allow_nd=True, ensure_all_finite=False, ensure_min_samples=0, input_name="y"
    )
    if labels.ndim == 0:
        raise DataError("y is a single value; it must have one label for each row.")
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
        if np.isinf(labels).any():
            raise DataError(f"y contains infinity at row {int(np.argwhere(np.isinf(labels))[0][0])}; labels are finite.")
    elif labels.dtype.kind == "O":
        missing = np.frompyfunc(lambda v: v is None or v != v, 1, 1)(labels).astype(bool)
    else:
        missing = np.zeros(labels.shape, bool)
    if labels.dtype.kind in "iuf" and missing_label is not None:
        others = np.unique(labels[~missing & (labels != missing_label)])
        if len(others) >= 2 and others[0] >= 0 and (others == np.floor(others)).all():
            missing |= labels == missing_label
    present = labels[~missing]
    if present.size:
        check_classification_targets(present)
    return labels, missing
