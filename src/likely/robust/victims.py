"""What is attacked: a fitted classifier, a fitted regressor, or a function that gives logits.

    labels    loss = −log p(y | x),     margin = max over k ≠ y of  log p(k | x) − log p(y | x)
    numbers   loss = margin = max over outputs of  |mean(y | x) − y| − threshold

The margin is above 0 where the answer is wrong: another class is more probable, or the prediction is off by more than a
threshold. p is the average over the posterior, so that gradients go through all members of an ensemble and all draws of
a chain.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import DataError, SpecError
from ..data.rows import row_size
from ..inference.predictor import InputPasses, Predictor
from ..likelihoods.base import log_of_classes
from ..models import Classifier, Regressor
from ..models.supervised.base import as_array
from ..optim.ascent import followed
from ..probability.joint import point

__all__ = ["Victim", "victim_of"]

BLOCK, LEAST = 1 << 22, 64
"""Numbers that a block of rows may have in the widest layer, over all members; rows of a block, at least."""
ROWS = 256
"""Rows of a block, of a function whose layers are not known."""
DEVIATIONS = 2.0
"""How far off a prediction may be, in standard deviations of the prediction, where no threshold is given."""


PURPOSE = "attacks and certificates"


class Victim(ABC):
    """What attacks ask (see `likely.optim.ascent.Victim`), and the door: rows and targets in, answers out."""

    linear: bool = False
    """Whether margins are linear in x, so that there is a closed form."""
    rows: int = ROWS
    """Rows to be attacked at once."""
    work: float = math.inf
    """Multiply-adds of the largest operation on these rows."""
    positions: bool = False
    """Whether labels may be those of positions in a row, whose scores are (n, *positions, classes)."""
    purpose: str = PURPOSE
    """Who asks, for messages."""

    @abstractmethod
    def read(self, X: Any) -> Tensor:
        """Rows as the module takes them: floating-point numbers (n, …)."""

    @abstractmethod
    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        """Targets as `margins` takes them, one entry per row; None: what the model itself answers."""

    @abstractmethod
    def scores(self, x: Tensor) -> Tensor:
        """What the margins are made of: log-probabilities (n, classes), or means (n, outputs)."""

    @abstractmethod
    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        """The margin of each way to be fooled, (n, ways)."""

    @abstractmethod
    def answers(self, X: Any) -> np.ndarray:
        """What the model says of rows, through its public door."""

    @abstractmethod
    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        """Which answers are wrong, (n,)."""

    def evaluate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss and the margin of each row, (n,) and (n,)."""
        return self.judged(self.scores(x), y)

    def judged(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The same, of scores."""
        margin = self.margins_of(scores, y).max(1).values  # one of two that are alike: both could have no gradient
        return margin, margin

    def follow(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The loss and the margin of each row, and the gradient of the loss in x, (n, …)."""
        return followed(self, x, y)

    def margins(self, x: Tensor, y: Tensor) -> Tensor:
        """The margin of each way to be fooled, (n, ways)."""
        return self.margins_of(self.scores(x), y)


class _Labelled(Victim):
    """Scores are log-probabilities (or logits), y the place of the right class among them."""

    def judged(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        own = scores.gather(1, y.unsqueeze(1)).squeeze(1)
        return scores.logsumexp(1) - own, self.margins_of(scores.detach(), y).amax(1)

    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        place = y.unsqueeze(1)
        return (scores - scores.gather(1, place)).scatter(1, place, -math.inf)


class _Fitted(Victim):
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


class _FittedClassifier(_Labelled, _Fitted):
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


class _FittedRegressor(_Fitted):
    """y is (n, 2, outputs): the numbers, and how far off a prediction may be."""

    def __init__(self, model: Any, threshold: Any) -> None:
        super().__init__(model)
        self.threshold = threshold

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        model = self.model
        given = model._read_targets(model.predict(X) if y is None else y, x, reset=False).reshape(len(x), -1).to(x)
        if bool(given.isnan().any()):
            row = int(given.isnan().any(1).nonzero()[0])
            raise DataError(f"y has no number at row {row}; an attack needs one for each row.")
        return torch.stack([given, self._thresholds(X, given)], 1)

    def _thresholds(self, X: Any, y: Tensor) -> Tensor:
        if self.threshold is not None:
            width = torch.as_tensor(np.asarray(self.threshold, dtype=float)).to(y)
            if not bool((width >= 0).all()) or width.ndim > 1 or (width.ndim == 1 and len(width) != y.shape[1]):
                raise DataError(f"threshold={self.threshold!r} must be a number of the units of y, 0 or more.")
            return width.expand_as(y)
        width = DEVIATIONS * self.model.predict_dist(X).variance.sqrt().reshape(len(y), -1).to(y)
        if not bool(width.isfinite().all()):
            raise DataError("The predictions have no finite standard deviation; give a threshold in the units of y.")
        return width.expand_as(y)

    def read_scores(self, distribution: Any) -> Tensor:
        mean = point(distribution)
        return mean.reshape(len(mean), -1)

    def margins_of(self, scores: Tensor, y: Tensor) -> Tensor:
        error, width = scores - y[:, 0], y[:, 1]
        return torch.cat([error - width, -error - width], 1)

    def answers(self, X: Any) -> np.ndarray:
        return self.model.predict(X)

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        target, width = as_array(y.double()).transpose(1, 0, 2)
        return (np.abs(answers.reshape(len(target), -1) - target) > width).any(1)


class _Function(_Labelled):
    """Any function from rows (n, …) to logits (n, classes)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function
        self.linear = type(function) is nn.Linear

    def read(self, X: Any) -> Tensor:
        x = X.detach() if isinstance(X, Tensor) else torch.from_numpy(np.array(X))
        weights = self.function.parameters() if isinstance(self.function, nn.Module) else iter(())
        like = next(weights, x if x.is_floating_point() else torch.empty(0))
        x = x.to(like.device, like.dtype)
        if x.ndim < 2 or not len(x) or not bool(x.isfinite().all()):
            raise DataError(f"X must have rows (n, …) of finite numbers; found shape {tuple(x.shape)}.")
        with torch.no_grad():
            given = self.scores(x[:1])
        if not isinstance(given, Tensor) or given.ndim != 2 or len(given) != 1 or given.shape[1] < 2:
            shape = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
            raise SpecError(f"model must give logits (n, classes) of 2 classes or more; for one row it gave {shape}.")
        self.classes = given.shape[1]
        return x

    def targets(self, x: Tensor, X: Any, y: Any) -> Tensor:
        labels = self.answers(x) if y is None else np.asarray(y.cpu() if isinstance(y, Tensor) else y)
        if labels.shape != (len(x),) or labels.dtype.kind not in "iu":
            raise DataError(f"y has shape {labels.shape} of {labels.dtype}; {len(x)} integers are needed: classes.")
        if labels.min() < 0 or labels.max() >= self.classes:
            raise DataError(
                f"y has labels {labels.min()} to {labels.max()}; the model has classes 0 to {self.classes - 1}."
            )
        return torch.from_numpy(labels.astype(np.int64)).to(x.device)

    def scores(self, x: Tensor) -> Tensor:
        return self.function(x)

    @torch.no_grad()
    def answers(self, X: Any) -> np.ndarray:
        x = self.read(X)
        return np.concatenate([as_array(self.scores(part).argmax(1)) for part in x.split(ROWS)])

    def wrong(self, answers: np.ndarray, y: Tensor) -> np.ndarray:
        return answers != as_array(y)


def victim_of(model: Any, threshold: Any = None, purpose: str = PURPOSE) -> Victim:
    """The victim that a model is: what it answers, as a differentiable function of rows in the units of X."""
    victim = _victim_of(model, threshold, purpose)
    victim.purpose = purpose
    return victim


def _victim_of(model: Any, threshold: Any, purpose: str) -> Victim:
    if isinstance(model, Classifier):
        return _FittedClassifier(model)
    if isinstance(model, Regressor):
        return _FittedRegressor(model, threshold)
    if hasattr(model, "fit") or not callable(model):
        raise SpecError(
            f"model is a {type(model).__name__}; {purpose} take a fitted Classifier or Regressor, or a "
            "function from rows (n, …) to logits (n, classes)."
        )
    return _Function(model)
