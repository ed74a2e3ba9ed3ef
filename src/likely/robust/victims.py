"""Models as what is attacked: fitted classifiers and regressors of whole rows or of tables, and functions.

p is the average over the posterior, so that gradients go through all members of an ensemble and all draws of a chain.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..data.rows import row_size
from ..inference.predictor import InputPasses, Predictor
from ..likelihoods.base import log_of_classes
from ..models import Classifier, Regressor, TableModel
from ..models.scored import Scored
from ..models.supervised.base import as_array
from ..networks.layers.standardise import IGNORED, MARGIN, Standardise
from ..probability.joint import point
from .functions import Function
from .partial import ColumnsVictim, TableVictim
from .scored import scored_victim
from .victim import PURPOSE, Labelled, Numbers, Scoring, Victim

__all__ = ["Victim", "learned_span", "scoring_of", "victim_of"]

BLOCK, LEAST = 1 << 22, 64
"""Numbers that a block of rows may have in the widest layer, over all members; rows of a block, at least."""
DEVIATIONS = 2.0
"""How far from their centre numbers are taken to go, in units of their scale, where their ends are not known."""


class _Fitted(Scoring):
    """What fitted models share."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.passes: InputPasses | None = None

    def read(self, X: Any) -> Tensor:
        model = self.model
        x = model._rows(X)
        name = type(model).__name__
        if not isinstance(x, Tensor):
            raise DataError(f"X has {x.kind}s; {self.purpose} take rows of one shape.")
        if model.offset_:
            raise DataError(
                f"The {name} was fitted with an offset or an exposure, which {self.purpose} do not know of these rows; "
                "make it a column of X."
            )
        if model.plan_.integer:
            raise DataError(
                f"The {name}'s inputs are tokens (integers), which have no small changes; {self.purpose} take numbers."
            )
        if model.positions_ and model.likelihood_.labels and not self.positions:
            raise DataError(
                f"The {name} has labels at positions {model.positions_}; {self.purpose} take models of one label per "
                "row."
            )
        posterior = model.posterior_
        self.linear = bool(model.plan_.linear) and len(posterior) == 1
        work, width = model.plan_.footprint
        members = len(posterior.weights) * int(posterior.info.get("draws", 1) if posterior.kind == "dropout" else 1)
        self.rows = min(len(x), max(LEAST, BLOCK // (members * max(width, row_size(x)))))
        self.work = float(work * members * self.rows)
        inputs = getattr(posterior.module, "inputs", None)
        self.span = None if inputs is None else learned_span(inputs)
        if posterior.single and isinstance(posterior.module, Predictor):
            self.passes = posterior.module.input_passes()
        return posterior.cast(x)

    def scores(self, x: Tensor) -> Tensor:
        return self.read_scores(self.model.posterior_.predictive(self.model.likelihood_, x))

    def follow(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.passes is None:
            return super().follow(x, y)
        loss, margin, gradient = self.follow_eta(self.passes.forward(x), y)
        return loss, margin, self.passes.backward(gradient)

    def follow_eta(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The loss and the margin of each row, and the gradient of the loss in η."""
        with torch.enable_grad():
            point = eta.detach().requires_grad_()
            loss, margin = self.judged(self.read_scores(self.model.likelihood_.distribution(point)), y)
            (gradient,) = torch.autograd.grad(loss.sum(), point)
        return loss.detach(), margin.detach(), gradient

    @abstractmethod
    def read_scores(self, distribution: Any) -> Tensor:
        """Scores from the predictive distribution."""


class _FittedClassifier(Labelled, _Fitted):
    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        targets = self.model._read_targets(self.model.predict(X) if y is None else y, x, reset=False)
        missing = targets.isnan().nonzero()
        if len(missing):
            raise DataError(f"y has no label at row {int(missing[0, 0])}; an attack needs one for each row.")
        return targets.long().to(x.device)

    @torch.no_grad()
    def follow_eta(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        likelihood = self.model.likelihood_
        log_prob, score = likelihood.value_and_grad(eta, y)
        margin = self.margins_of(self.read_scores(likelihood.distribution(eta)), y).amax(1)
        return log_prob.neg(), margin, score.neg()

    def read_scores(self, distribution: Any) -> Tensor:
        return log_of_classes(distribution)

    def answers(self, X: Any) -> np.ndarray:
        return self.model.predict(X)

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        return answers != self.model.classes_[as_array(y)]


class _FittedRegressor(Numbers, _Fitted):
    def __init__(self, model: Any, threshold: Any) -> None:
        super().__init__(model)
        self.threshold = threshold

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        model = self.model
        given = model._read_targets(model.predict(X) if y is None else y, x, reset=False).reshape(len(x), -1).to(x)
        return self.with_thresholds(given, lambda: model.predict_dist(X))

    def read_scores(self, distribution: Any) -> Tensor:
        mean = point(distribution)
        return mean.reshape(len(mean), -1)

    def answers(self, X: Any) -> np.ndarray:
        return self.model.predict(X)


def learned_span(inputs: Standardise) -> tuple[float, float]:
    """The least and the largest number of the training rows: exact for columns whose ends are known.

    >>> learned_span(Standardise(torch.tensor([5.0]), torch.tensor([2.0])))
    (1.0, 9.0)
    """
    centre, scale = inputs.centre.double(), inputs.scale.double()
    scale = torch.where(scale >= IGNORED / 2, 0.0, scale)  # of a constant column
    if inputs.low is None or inputs.high is None:
        return float((centre - DEVIATIONS * scale).min()), float((centre + DEVIATIONS * scale).max())
    ends = torch.stack([inputs.low.double() + MARGIN, inputs.high.double() - MARGIN])
    if inputs.bend is not None:  # z ↦ z/√(1 + (bz)²) the other way
        ends = ends / (1 - (ends * inputs.bend.double()).square()).clamp_min(1e-6).sqrt()
    numbers = centre + scale * ends
    return float(numbers.min()), float(numbers.max())


def victim_of(model: Any, threshold: Any = None, purpose: str = PURPOSE) -> Victim:
    """The victim that a model is: what it answers, as a differentiable function of rows in the units of X."""
    if isinstance(model, TableModel):
        check_is_fitted(model, "table_")
        victim: Victim = TableVictim(model, scoring_of(model.model_, threshold, purpose))
    else:
        whole = scoring_of(model, threshold, purpose)
        victim = ColumnsVictim(model, whole) if isinstance(model, Scored) and model._ends is not None else whole
    victim.purpose = purpose
    return victim


def scoring_of(model: Any, threshold: Any = None, purpose: str = PURPOSE) -> Scoring:
    """The victim that a model of whole rows is, with its scores."""
    victim = _scoring_of(model, threshold, purpose)
    if threshold is not None and not isinstance(victim, Numbers):
        raise SpecError(
            f"threshold={threshold!r} is for regressors: a classifier errs where its answer is another label than y. "
            "Leave it out."
        )
    victim.purpose = purpose
    return victim


def _scoring_of(model: Any, threshold: Any, purpose: str) -> Scoring:
    if isinstance(model, Classifier):
        return _FittedClassifier(model)
    if isinstance(model, Regressor):
        return _FittedRegressor(model, threshold)
    if isinstance(model, Scored):
        return scored_victim(model, threshold)
    if hasattr(model, "fit") or not callable(model):
        raise SpecError(
            f"model is a {type(model).__name__}; {purpose} take a fitted Classifier, Regressor, GaussianProcess, "
            "KernelRidge, NaiveBayes, Perceptron, SupportVector or TableModel, or a function from rows (n, …) to "
            "logits (n, classes)."
        )
    return Function(model)
