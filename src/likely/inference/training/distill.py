"""Distill: one model is taught by another, by its probabilities and not by labels alone.

    loss = mix · T² · Σₖ −qₖ log pₖ  +  (1 − mix) · −log p(y | η)
    q = softmax(log p_teacher / T),   p = softmax(log p_student / T)

A temperature T above 1 softens both, so that the student sees which wrong classes the teacher finds likely. With the
student's logits z and the teacher's v, the gradient in z is T·(p − q): the factor T² keeps its size for every T.
Numbers are taught by the teacher's mean m, in units of the noise s that the teacher leaves: ½((m − mean(η))/s)² stands
for the first term.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, distributions
from torch.nn.functional import logsigmoid

from ...core.checkpoint import Checkpoint
from ...core.errors import DataError, SpecError
from ...core.quiet import quiet
from ...core.random import spread
from ...core.spec import as_spec, require
from ...data.rows import Inputs, Ragged, Rows
from ...likelihoods import Likelihood
from ...probability.joint import point
from ..dataset import Dataset
from ..objective import OnEta, refuse
from ..posterior import Posterior
from ..problem import Inference, Problem
from .around import _Around
from .map import MAP, Held

__all__ = ["Distill"]

ROWS = 4096
"""Rows that the teacher is asked about at once."""
LEAST_NOISE = 0.01
"""The least s, as a fraction of the spread of y: a teacher that repeats its targets would drown them."""


class Distill(_Around):
    """Fit `by` another inference, taught by a `teacher`; `mix` is the teacher's fraction of the loss.

    The teacher is any fitted model with `predict_proba` (for labels) or `predict` (for numbers), asked once about the
    training rows; it may take them in another shape (images, where the student's rows are flat). Or it is an inference,
    which fits the student's own network first: `Distill(Ensemble(5))` puts an ensemble into one network. Without one
    it is what `by` finds alone, and the student is born again.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from likely import Classifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> Classifier(inference=Distill(forest, by=MAP(epochs=50)), random_state=0).fit(X, y).predict([[0.5]])
    array(['a'], dtype='<U1')
    """

    teacher: Any = None
    temperature: float = 2.0
    mix: float = 0.5
    by: Inference = MAP()
    asks: ClassVar[frozenset[str]] = frozenset({"likelihood", "alone"})

    @classmethod
    def example(cls) -> Distill:
        """Born again after a few steps."""
        return cls(by=MAP.example())

    def validate(self) -> None:
        """A temperature is positive, the mix a fraction; a model as the teacher is held as it is."""
        super().validate()
        teacher = self.teacher
        if isinstance(teacher, str):
            teacher = as_spec(teacher, Inference, "teacher")
        elif not isinstance(teacher, Inference | Held | None):
            answers = hasattr(teacher, "predict_proba") or hasattr(teacher, "predict")
            model = answers and not isinstance(teacher, type)
            require(model, self, "teacher", "a fitted model, an inference, or None")
            teacher = Held(teacher)
        object.__setattr__(self, "teacher", teacher)
        require(0 < self.temperature < math.inf, self, "temperature", "a positive number")
        require(0 <= self.mix <= 1, self, "mix", "a fraction between 0 and 1")

    def fit(self, problem: Problem) -> Posterior:
        """What `by` finds for the taught problem."""
        taught = self.taught(problem)
        refuse(self.by, taught.objective)
        return self.by.fit(taught)

    def fit_members(self, problem: Problem, seeds: list[int]) -> Posterior:
        """All members have the same teacher."""
        return self.by.fit_members(self.taught(problem.with_(seed=seeds[0])), seeds)

    def taught(self, problem: Problem) -> Problem:
        """The problem whose targets bring the teacher's answers with them, and whose objective mixes the two."""
        kind = _TaughtLabels if problem.likelihood.labels else _TaughtNumbers
        objective = kind(problem.likelihood, self.temperature, self.mix)
        answers = self._answers(problem)

        def together(data: Dataset) -> Dataset:
            y, weight = (part.values if isinstance(part, Ragged) else part for part in (data.y, data.weight))
            assert isinstance(y, Tensor)
            parts = data.x.split(ROWS)
            told = torch.cat([answers(part) for part in parts]).to(y)
            pairs = objective.beside(y, told, weight)
            return dataclasses.replace(data, y=Ragged(pairs, data.y.offsets) if isinstance(data.y, Ragged) else pairs)

        encode = problem.encode
        return problem.with_(
            objective=objective,
            data=together(problem.data),
            encode=None if encode is None else lambda X, y, w: together(encode(X, y, w)),
        )

    def _answers(self, problem: Problem) -> Callable[[Inputs], Tensor]:
        """From rows to the teacher's log-probabilities (…, classes) of labels, or to its means of numbers."""
        if isinstance(self.teacher, Held):
            (model,) = self.teacher.parts
            return _asked_for_labels(model, problem) if problem.likelihood.labels else _asked_for_numbers(model)
        first = _with_checkpoints_apart(self.by) if self.teacher is None else self.teacher
        data = problem.data
        own = problem.with_(seed=spread(problem.seed, 1)[0])
        if first.dtype != data.dtype:
            own = own.with_(data=data.to(first.dtype))
        posterior, likelihood = first.fit(own), problem.likelihood
        read = _log_probabilities if likelihood.labels else point

        @torch.no_grad()
        def answers(x: Inputs) -> Tensor:
            return read(posterior.predictive(likelihood, x))

        return answers


class _Taught(OnEta):
    """log p of targets that have the teacher's answer beside them, along one more axis, mixed with the lesson."""

    def __init__(self, likelihood: Likelihood, temperature: float, mix: float) -> None:
        self.likelihood, self.temperature, self.mix = likelihood, temperature, mix
        self.name = "a taught model"

    def __repr__(self) -> str:
        return f"{self.likelihood!r}, taught"

    def beside(self, y: Tensor, told: Tensor, weight: Tensor | None) -> Tensor:
        """Targets and the teacher's answers as one tensor."""
        raise NotImplementedError


class _TaughtLabels(_Taught):
    """y is (…, 1 + classes): the label, and the teacher's softened probabilities."""

    def beside(self, y: Tensor, told: Tensor, weight: Tensor | None) -> Tensor:
        _check_shape(told, (*y.shape, _classes(self.likelihood)))
        return torch.cat([y.unsqueeze(-1), (told / self.temperature).softmax(-1)], -1)

    def target_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        own = (_log_probabilities(self.likelihood.distribution(eta)) / self.temperature).log_softmax(-1)
        lesson = self.temperature**2 * (y[..., 1:] * own).sum(-1)
        return self.mix * lesson + (1 - self.mix) * self.likelihood.log_prob(eta, y[..., 0])


class _TaughtNumbers(_Taught):
    """y is (…, 3): the number, the teacher's mean, and the noise that the teacher leaves."""

    def beside(self, y: Tensor, told: Tensor, weight: Tensor | None) -> Tensor:
        _check_shape(told, y.shape)
        counted = (~y.isnan()).to(y)
        if weight is not None:
            counted = counted * weight.reshape(*weight.shape, *(1,) * self.likelihood.event_dim)

        def size(gap: Tensor) -> Tensor:
            return ((counted * gap.nan_to_num().square()).sum(0) / counted.sum(0)).nan_to_num().sqrt()

        middle = ((counted * y.nan_to_num()).sum(0) / counted.sum(0)).nan_to_num()
        noise = torch.maximum(size(y - told), LEAST_NOISE * size(y - middle))
        return torch.stack([y, told, torch.where(noise > 0, noise, 1.0).expand_as(y)], -1)

    def target_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        target, told, noise = y.unbind(-1)
        gap = 0.5 * ((told - self.likelihood.mean(eta)) / noise).square()
        lesson = gap.flatten(gap.ndim - self.likelihood.event_dim).sum(-1) if self.likelihood.event_dim else gap
        return (1 - self.mix) * self.likelihood.log_prob(eta, target) - self.mix * lesson


# --- asking a model -------------------------------------------------------------------------------------------------
def _asked_for_labels(model: Any, problem: Problem) -> Callable[[Inputs], Tensor]:
    if not hasattr(model, "predict_proba"):
        raise SpecError(f"teacher is a {type(model).__name__} without predict_proba, which is needed to teach labels.")
    columns = _columns_of(model, problem)
    question = getattr(model, "predict_log_proba", None)
    many = _classes(problem.likelihood)

    def answers(x: Inputs) -> Tensor:
        with np.errstate(divide="ignore"):  # a probability of 0 has the logarithm −∞
            told = _ask(question or model.predict_proba, model, x)
            told = told if question is not None else told.log()
        if columns is None:
            return told
        logits = told.new_full((*told.shape[:-1], many), -math.inf)
        logits[..., columns] = told
        return logits

    return answers


def _asked_for_numbers(model: Any) -> Callable[[Inputs], Tensor]:
    if not hasattr(model, "predict"):
        raise SpecError(f"teacher is a {type(model).__name__} without predict, which is needed to teach numbers.")
    return lambda x: _ask(model.predict, model, x)


def _ask(question: Callable[[Any], Any], model: Any, x: Inputs) -> Tensor:
    """The model's answers for rows x, which it gets in the shape that it was fitted on."""
    rows: Any = x
    if not isinstance(x, Rows):
        shape = getattr(model, "in_shape_", None) or (getattr(model, "n_features_in_", -1),)
        own = tuple(x.shape[1:])
        rows = (x.reshape(-1, *shape) if math.prod(shape) == math.prod(own) else x).cpu().numpy()
    with quiet(UserWarning, "X does not have valid feature names"):  # they are the same columns
        told = question(rows)
    return torch.from_numpy(np.concatenate(told) if isinstance(told, list) else np.array(told))


def _columns_of(model: Any, problem: Problem) -> Tensor | None:
    """Where each of the teacher's classes stands among the student's; None if the teacher does not say."""
    known = getattr(model, "classes_", None)
    if problem.encode is None or not isinstance(known, np.ndarray):
        return None
    data = problem.data
    row = int(data.y.lengths.argmax()) if isinstance(data.y, Ragged) else 0  # one that has targets
    rows = data.x[torch.full((len(known),), row, dtype=torch.long, device=data.x.device)]
    positions = (int(data.y.lengths[row]),) if isinstance(data.y, Ragged) else data.positions
    y = np.stack([np.full(positions, name) for name in known])
    try:
        labels = problem.encode(rows, list(y) if isinstance(data.y, Ragged) else y, None).y
    except DataError as error:
        names = ", ".join(map(str, known[:10]))
        raise DataError(f"teacher has other classes ({names}) than y: {error}") from error
    flat = labels.values if isinstance(labels, Ragged) else labels
    assert flat is not None
    return flat.reshape(len(known), -1)[:, 0].long().cpu()


def _log_probabilities(distribution: Any) -> Tensor:
    """log P of each class, (…, classes)."""
    logits: Tensor = distribution.logits
    if isinstance(distribution, distributions.Bernoulli):
        return torch.stack([logsigmoid(-logits), logsigmoid(logits)], -1)
    return logits


def _classes(likelihood: Likelihood) -> int:
    known = likelihood.known_target()
    return (known.classes if known is not None else None) or 2


def _check_shape(told: Tensor, wanted: tuple[int, ...]) -> None:
    if tuple(told.shape) != tuple(wanted):
        raise DataError(f"teacher answers with shape {tuple(told.shape)}, where the student's targets need {wanted}.")


def _with_checkpoints_apart(inference: Inference) -> Inference:
    """The same inference, whose checkpoints are files of their own: run.ckpt becomes run.ckpt.teacher."""
    given = {name: kept for name, kept in inference.get_params().items() if name.split("__")[-1] == "checkpoint"}
    kept = {name: Checkpoint(path) if isinstance(path, str) else path for name, path in given.items() if path}
    return inference.replace(**{name: own.replace(path=f"{own.path}.teacher") for name, own in kept.items()})
