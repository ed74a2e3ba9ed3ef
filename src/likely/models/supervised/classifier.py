"""Classifier: targets are labels; the answer is the most probable class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import logsigmoid

from ...core.errors import DataError, ModelFileError, SpecError
from ...core.spec import as_spec
from ...data.rows import Inputs, Rows
from ...inference.dataset import Dataset
from ...likelihoods import Bernoulli, Categorical, Likelihood, Target
from ...likelihoods.base import of_classes
from ...likelihoods.ordinal import cut_points
from ...networks import Linear
from ..labels import (
    as_column,
    classes_in_order,
    encode_labels,
    is_ordered,
    read_labels,
    restore_classes,
    several_classes,
    shown,
    state_of_classes,
)
from .base import Supervised, as_array
from .class_weights import class_weights, restore_class_weights, times_class_weights
from .formulas import unpacked
from .offset import part_of
from .targets import check_targets, entries_of, is_coupled
from .texts import with_evidence

__all__ = ["Classifier"]


class Classifier(ClassifierMixin, Supervised):
    """p(y | x) for labels y: likelihood × network × prior × inference.

    The defaults are logistic regression (softmax regression for more than two classes). y is (n,) or (n, *positions):
    a label for each row, token or pixel. A missing label is NaN, None, or `missing_label` if one is given (such as
    −1 for the unknown nodes of a graph); every other label is a class.

    A network that is not linear standardises its inputs by the training rows, so that raw columns will do; with
    `standardise=False` it takes them as they are. `prior="auto"` is flat for numbers.

    `class_weight="balanced"` lets each class count alike, whatever its number of rows; a dict gives each its weight.

    `inference="auto"` cross-fits a network that is not linear: on a table eight of them (four from 1,000 rows on), each
    stopped by a fold that the others learn from, and an affine map with the weight that held-out rows give it, whose
    mixture answers; on sequences five, each stopped by a tenth of the rows of its own; on images and graphs one.
    `inference=MAP()` trains one network on all rows.

    X may be texts: a list of strings, one for each row. A network over steps (`LSTM`, `Transformer` …) reads their
    tokens, cut as `tokens` says (`Words`, `Characters` or `BPE`); others get a `Bag` of words and pairs of words, what
    those say of the classes beside, and weights whose prior is normal. With lists of words as rows, and of labels as
    y, `Classifier(Chain(), LSTM(bidirectional=True, output="each"))` tags. Words that no training text has are unknown.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "b", "a", "b", "b"]
    >>> model = Classifier().fit(X, y)
    >>> model.predict([[0.0], [5.0]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[2.5]]).round(3)
    array([[0.5, 0.5]])
    >>> texts = ["a warm film", "so warm , so good", "good", "cold", "a cold and dull film", "so dull"]
    >>> Classifier().fit(texts, ["yes", "yes", "yes", "no", "no", "no"]).predict(["good and warm !", "dull ..."])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        likelihood: Any = "auto",
        network: Any = Linear(),  # noqa: B008 (a frozen value)
        prior: Any = "auto",
        inference: Any = "auto",
        random_state: Any = None,
        device: Any = "auto",
        verbose: bool = False,
        standardise: bool = True,
        missing_label: int | None = None,
        tokens: Any = "auto",
        class_weight: Any = None,
    ) -> None:
        self.likelihood = likelihood
        self.network = network
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.standardise = standardise
        self.missing_label = missing_label
        self.tokens = tokens
        self.class_weight = class_weight

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """The most probable class of each row (and position); where those differ in number, a list of arrays.

        Of positions that a likelihood couples, the most probable classes of a row together.
        """
        x = self._rows(X)
        return self._parted(self._most_probable(x, self._offset(x, offset, exposure)), x)

    def _most_probable(self, x: Inputs, offset: Tensor | None = None) -> np.ndarray:
        if is_coupled(self):
            return self.classes_[self._in_blocks(x, lambda rows, _: as_array(self._predictive(rows).mode))]
        return self.classes_[self._probabilities(x, offset, most=True)]

    def predict_proba(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """The probability of each class: (n, *positions, classes), in the order of `classes_`."""
        x = self._rows(X)
        return self._parted(self._probabilities(x, self._offset(x, offset, exposure)), x)

    def _predictive(self, x: Inputs, offset: Tensor | None = None) -> Distribution:
        """Over the places of labels in `classes_`: a `Categorical`, unless `likelihood=Bernoulli()` was asked for."""
        distribution = super()._predictive(x, offset)
        automatic = isinstance(self.likelihood, str) and self.likelihood == "auto"
        if not automatic or not isinstance(distribution, torch.distributions.Bernoulli):
            return distribution
        logits = _of_both(distribution.logits)
        both = torch.distributions.Categorical(logits=logits, validate_args=False)
        both.logits = logits  # they are normalised: to do so again would round probabilities near 1
        return both

    def predict_log_proba(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """The logarithm of `predict_proba`, finite also where a probability is too small for a number."""
        x = self._rows(X)
        shift = self._offset(x, offset, exposure)

        def answer(rows: Inputs, entries: slice) -> np.ndarray:
            distribution: Any = self._predictive(rows, part_of(shift, entries))
            logits = distribution.logits
            if isinstance(distribution, torch.distributions.Bernoulli):
                logits = _of_both(logits)
            return as_array(logits)

        return self._parted(self._in_blocks(x, answer), x)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> float:
        """The accuracy: the fraction of labels, of those that are not missing, that `predict` finds.

        X may be a formula, which has the targets.
        """
        X, y, sample_weight, offset, exposure = unpacked(X, y, sample_weight, offset, exposure)
        x = self._rows(X)
        predicted = self._most_probable(x, self._offset(x, offset, exposure))
        labels, missing = self._labels(*entries_of(self, y, x, reset=False), reset=False)
        weight = self._weights(sample_weight, x, labels.shape[1:])
        counts = np.ones(len(labels)) if weight is None else weight.numpy()
        weights = (counts if counts.ndim > 1 else counts.reshape(-1, *(1 for _ in labels.shape[1:]))) * ~missing
        if not weights.any():
            raise DataError("y has no label to score: every one is missing, or has no sample_weight.")
        return float(np.average(predicted == labels, weights=weights))

    def _probabilities(self, x: Inputs, offset: Tensor | None = None, *, most: bool = False) -> np.ndarray:
        """Of each class; or the place of the `most` probable one."""

        def answer(rows: Inputs, entries: slice) -> np.ndarray:
            block = self._block(rows, part_of(offset, entries))
            return block.argmax(-1) if most else block

        return self._in_blocks(x, answer)

    def _block(self, x: Inputs, offset: Tensor | None = None) -> np.ndarray:
        probabilities = self._point(x, "probabilities", offset)
        return as_array(of_classes(self._predictive(x, offset)) if probabilities is None else probabilities)

    @property
    def cut_points_(self) -> np.ndarray:
        """Where an `Ordinal` parts its labels, (K − 1,), averaged over the posterior: P(y ≤ j | x) = σ(cⱼ − f(x)).

        For a linear network f(x) is w x without an intercept, which moves all cut points alike.
        """
        posterior = getattr(self, "posterior_", None)
        if posterior is None or not self.likelihood_.ordered or "shared" not in posterior.parameters:
            raise AttributeError("Classifier has cut points once it is fitted with likelihood=Ordinal().")
        cuts = cut_points(posterior.parameters["shared"].double())
        bias = posterior.parameters.get("network.bias") if self.plan_.linear else None
        cuts = cuts if bias is None else cuts - bias.double().reshape(*cuts.shape[:-1], 1)
        return as_array(torch.tensordot(posterior.weights.to(cuts), cuts, 1))

    def _likelihood(self) -> Likelihood:
        if isinstance(self.likelihood, str) and self.likelihood == "auto":
            return Bernoulli() if len(self.classes_) == 2 else Categorical(len(self.classes_))
        likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
        if not likelihood.labels:
            raise SpecError(f"likelihood={likelihood!r} describes numbers, not classes; use Regressor.")
        return likelihood.bind(Target(classes=len(self.classes_)))

    def _target(self, likelihood: Likelihood, y: Tensor) -> Target:
        return Target(classes=len(self.classes_))

    def _targets(self, y: Any, rows: int, positions: tuple[int, ...] | None, *, reset: bool) -> Tensor:
        labels, missing = self._labels(y, rows, positions, reset=reset)
        if reset:
            self.classes_ = self._classes(labels[~missing], y)
            self._check_classes(self._likelihood())
        targets = torch.from_numpy(encode_labels(labels, missing, self.classes_))
        if reset:
            self.class_weight_ = class_weights(self.class_weight, targets, self.classes_)
        return targets

    def _reweighted(self, data: Dataset) -> Dataset:
        return times_class_weights(data, self.class_weight_)

    def _classes(self, labels: np.ndarray, y: Any) -> np.ndarray:
        if not is_ordered(self.likelihood):
            return several_classes(labels)
        return classes_in_order(labels, y, as_spec(self.likelihood, Likelihood, "likelihood"))

    def _labels(
        self, y: Any, rows: int, positions: tuple[int, ...] | None, *, reset: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.missing_label is not None and not isinstance(self.missing_label, int | np.integer):
            raise SpecError(f"missing_label={self.missing_label!r} must be an integer, such as −1, or None.")
        labels, missing = read_labels(y, type(self).__name__, rows=rows, missing_label=self.missing_label)
        if reset or positions == ():
            labels, missing = as_column(labels, missing)
        if not reset:
            check_targets(self, "labels", labels.shape, positions)
        return labels, missing

    def _informed(self, x: Inputs, targets: Tensor, weight: Tensor | None) -> Inputs:
        informed = with_evidence(self, x, targets, weight, len(self.classes_))
        if isinstance(informed, Rows) and not informed.positional:
            self.n_features_in_ = informed.shape[0]
        return informed

    def _check_classes(self, likelihood: Likelihood) -> None:
        """A likelihood may know how many classes it describes."""
        count = len(self.classes_)
        known = likelihood.known_target()
        fits = bool(likelihood.support.check(torch.arange(count)).all())
        if not fits or (known is not None and known.classes not in (None, count)):
            raise DataError(
                f"y has {count} classes ({shown(self.classes_)}), which likelihood={likelihood!r} does not describe; "
                'likelihood="auto" takes as many as there are.'
            )

    def _decode(self, y: Tensor) -> np.ndarray:
        return self.classes_[as_array(y.long())]

    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, tensors = super()._state()
        weights = {} if self.class_weight_ is None else {"class_weight": self.class_weight_.tolist()}
        return learned | state_of_classes(self.classes_) | weights, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.classes_ = restore_classes(learned, ordered=is_ordered(self.likelihood))
        self.class_weight_ = restore_class_weights(learned.get("class_weight"), len(self.classes_))
        super()._restore(learned, tensors)
        self._check_classes(self.likelihood_)
        if self.target_.classes not in (None, len(self.classes_)):
            raise ModelFileError(f"The file has {len(self.classes_)} classes for targets of {self.target_.classes}.")


def _of_both(logits: Tensor) -> Tensor:
    """log p of 0 and of 1, (…, 2), for the logit of 1."""
    return torch.stack([logsigmoid(-logits), logsigmoid(logits)], -1)
