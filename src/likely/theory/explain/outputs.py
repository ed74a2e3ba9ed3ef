"""What is explained: one number for each row, as a function of its inputs.

    labels    log-odds  log p(k | x) − log(1 − p(k | x)),   or the probability p(k | x)
    numbers   the mean of y given x

p is the average over the posterior. Fitted classifiers and regressors, and functions of tensors, are differentiable;
any other model is asked through `predict_proba` or `predict`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.errors import SpecError
from ...core.threads import threads_for
from ...models import Classifier, GaussianProcess, Regressor
from ...models.supervised.base import as_array
from ...robust.functions import RowFunction
from ...robust.victim import Scoring
from ...robust.victims import scoring_of
from .places import places_of, region_of, which_positions

__all__ = ["Output", "asked_output", "differentiable"]

BLOCK = 256
"""Rows of a function that are taken at once."""
LEAST = 1e-12
"""A probability that a model gives as nearer to 0 or to 1 is taken for this far from it: its log-odds stay finite."""


class Output:
    """f of rows: read them once, choose what is explained of each, then ask as often as needed."""

    of: str = "output"
    classes: np.ndarray | None = None
    rows: int = BLOCK
    work: float = float("inf")
    explained: np.ndarray | None = None
    """The name of what is explained of each row, once `places` has been asked."""

    def read(self, X: Any) -> Tensor:
        """Rows as `scores` takes them."""
        raise NotImplementedError

    def scores(self, x: Tensor) -> Tensor:
        """Every number that could be explained, (n, k)."""
        raise NotImplementedError

    def pick(self, scores: Tensor, place: Tensor) -> Tensor:
        """The one that is, (n,), at each row's place among k."""
        return scores.gather(1, place.unsqueeze(1)).squeeze(1)

    def places(self, x: Tensor, target: Any) -> Tensor:
        """Where what is explained of each row stands among the scores: of its most probable class, if none is given."""
        given = target.cpu() if isinstance(target, Tensor) else target
        with torch.no_grad():
            scores = torch.cat([self.scores(part) for part in x.split(self.rows)])
        place, self.explained = places_of(as_array(scores), given, self.classes)
        return torch.from_numpy(np.array(place)).to(x.device)

    def __call__(self, x: Tensor, place: Tensor) -> Tensor:
        """f of each row, (n,)."""
        return self.pick(self.scores(x), place)

    @torch.no_grad()
    def values(self, x: Tensor, place: Tensor) -> Tensor:
        """f of many rows, in blocks."""
        with threads_for(self.work):
            parts = zip(x.split(self.rows), place.split(self.rows), strict=True)
            return torch.cat([self(rows, own) for rows, own in parts])

    def gradient(self, x: Tensor, place: Tensor) -> Tensor:
        """∂f/∂x of many rows."""
        return self.with_gradient(x, place)[1]

    def with_gradient(self, x: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """f and ∂f/∂x of many rows, in blocks."""
        values, gradients = [], []
        with threads_for(self.work), torch.enable_grad():
            for rows, own in zip(x.split(self.rows), place.split(self.rows), strict=True):
                at = rows.detach().requires_grad_()
                f = self(at, own)
                if not f.requires_grad:
                    raise SpecError(
                        "The output does not depend on x by a differentiable way: a network with steps (sign, round) "
                        "or of another library has no gradients; use occlusion or shapley."
                    )
                gradients.append(torch.autograd.grad(f.sum(), at)[0])
                values.append(f.detach())
        return torch.cat(values), torch.cat(gradients)


class _Fitted(Output):
    """A fitted classifier or regressor: what attacks ask, read as log-odds, probabilities or means."""

    def __init__(self, model: Any, of: str) -> None:
        check_is_fitted(model)
        self.victim: Scoring = scoring_of(model, purpose="explanations by gradients")
        self.of = of
        self.classes = model.classes_ if isinstance(model, Classifier) else None

    def read(self, X: Any) -> Tensor:
        x = self.victim.read(X)
        self.rows, self.work = self.victim.rows, self.victim.work
        return x

    def scores(self, x: Tensor) -> Tensor:
        return of_scores(self.victim.scores(x), self.of)


class _Region(_Fitted):
    """What a model says of some positions of a row, such as the pixels of an image: the mean over them."""

    def __init__(self, model: Any, of: str, at: Any) -> None:
        super().__init__(model, of)
        self.victim.positions = True
        if not model.positions_:
            raise _no_positions(model)
        self.at, self.positions = at, tuple(model.positions_)

    def scores(self, x: Tensor) -> Tensor:
        given = self.victim.scores(x)
        if self.of == "mean":
            given = given.unsqueeze(-1)
        sides = tuple(given.shape[1:-1]) if self.classes is not None else self.positions
        own = given.reshape(len(given), -1, given.shape[-1])[:, torch.from_numpy(region_of(self.at, sides))]
        means = of_scores(own.reshape(-1, own.shape[-1]), self.of)
        return means.view_as(own).mean(1)


class _Process(Output):
    """A fitted Gaussian process: gradients go through its kernel."""

    def __init__(self, model: GaussianProcess, of: str) -> None:
        check_is_fitted(model)
        self.model, self.of = model, of
        self.classes = model.__dict__.get("classes_")

    def read(self, X: Any) -> Tensor:
        return self.model._points(X)

    def scores(self, x: Tensor) -> Tensor:
        return of_scores(self.model._scores(x), self.of)


class _Function(Output):
    """Any function from rows (n, …) to numbers (n,) or (n, k)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = RowFunction(function)

    def read(self, X: Any) -> Tensor:
        return self.function.read(X)

    def scores(self, x: Tensor) -> Tensor:
        given = self.function.numbers(x, (1, 2), "numbers (n,) or (n, k) for n rows")
        return given.unsqueeze(1) if given.ndim == 1 else given


def differentiable(model: Any, of: str = "auto", at: Any = None) -> Output:
    """The output of a model that has gradients; of a model that answers at positions, the mean over those `at`.

    >>> differentiable(torch.nn.Linear(2, 3)).of
    'output'
    """
    labelled = isinstance(model, Classifier) or (isinstance(model, GaussianProcess) and hasattr(model, "predict_proba"))
    chosen = ("log_odds", "probability") if labelled else ("mean",)
    if isinstance(model, Classifier | Regressor):
        check_is_fitted(model)
        return _Fitted(model, _chosen(of, chosen)) if at is None else _Region(model, _chosen(of, chosen), at)
    if at is not None:
        raise _no_positions(model)
    if isinstance(model, GaussianProcess):
        return _Process(model, _chosen(of, chosen))
    if hasattr(model, "fit") or not callable(model):
        raise SpecError(
            f"model is a {type(model).__name__}; explanations by gradients take a fitted Classifier, Regressor or "
            "GaussianProcess, or a function of tensors (n, …) to numbers; occlusion and shapley take anything that "
            "predicts."
        )
    _chosen(of, ("output",))
    return _Function(model)


def asked_output(
    model: Any, of: str = "auto", at: Any = None
) -> tuple[Callable[[Any], np.ndarray], str, np.ndarray | None]:
    """A function of rows of any kind to all its scores (n, k); what they are; and the classes, if it has those.

    Of a model that answers at positions, scores are means over those `at`.
    """
    if hasattr(model, "predict_proba") and getattr(model, "classes_", None) is not None:
        chosen = _chosen(of, ("log_odds", "probability"))

        def labels(X: Any) -> np.ndarray:
            scores = _log_odds(model.predict_proba(X), chosen)
            if scores.ndim > 2 and at is None:
                raise which_positions(model, scores.shape[1:-1])
            return _at(model, scores, at)

        return labels, chosen, np.asarray(model.classes_)
    if hasattr(model, "predict"):
        return lambda X: _means(model, model.predict(X), at), _chosen(of, ("mean",)), None
    if not callable(model):
        raise SpecError(f"model is a {type(model).__name__}; it must have predict_proba or predict, or be a function.")
    return lambda X: _means(model, model(X), at), _chosen(of, ("output",)), None


def _at(model: Any, scores: np.ndarray, at: Any) -> np.ndarray:
    """Scores (n, *positions, k) as means over some positions, (n, k); those without positions as they are."""
    if at is None:
        return scores
    if scores.ndim == 2:
        raise _no_positions(model)
    flat = scores.reshape(len(scores), -1, scores.shape[-1])
    return flat[:, region_of(at, scores.shape[1:-1])].mean(1)


def of_scores(log_probs: Tensor, of: str) -> Tensor:
    """Log-odds or probabilities of log-probabilities (n, classes); means as they are.

    >>> of_scores(torch.tensor([[0.25, 0.75]]).log(), "log_odds").exp()
    tensor([[0.3333, 3.0000]])
    """
    if of == "mean":
        return log_probs
    if of == "probability":
        return log_probs.softmax(1)
    others = log_probs.unsqueeze(1).expand(-1, log_probs.shape[1], -1)
    own = torch.eye(log_probs.shape[1], dtype=torch.bool, device=log_probs.device)
    return log_probs - others.masked_fill(own, -torch.inf).logsumexp(2)


def _log_odds(probabilities: Any, of: str) -> np.ndarray:
    values = np.asarray(probabilities, dtype=float)
    if of == "probability":
        return values
    above, below = np.zeros_like(values), np.zeros_like(values)
    above[..., 1:] = values[..., :-1].cumsum(-1)
    below[..., :-1] = values[..., :0:-1].cumsum(-1)[..., ::-1]
    others = above + below  # 1 − p would keep what p is rounded by, which in float32 is all of it
    return np.log(values.clip(LEAST)) - np.log(others.clip(LEAST))


def _means(model: Any, answers: Any, at: Any) -> np.ndarray:
    values = np.asarray(answers.detach().cpu() if isinstance(answers, Tensor) else answers)
    if values.dtype.kind not in "fiub":
        raise SpecError(f"model predicts {values.dtype} and has no predict_proba; numbers are explained.")
    numbers = values.astype(float)
    return numbers.reshape(len(values), -1) if at is None else _at(model, numbers[..., None], at)


def _no_positions(model: Any) -> SpecError:
    return SpecError(
        f"at is for models that answer at positions, such as pixels; this {type(model).__name__} has none."
    )


def _chosen(of: str, known: tuple[str, ...]) -> str:
    if of == "auto":
        return known[0]
    if of not in known:
        raise SpecError(f"of={of!r} must be {' or '.join(known)} for this model.")
    return of
