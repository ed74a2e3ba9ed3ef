"""FineTune: begin where another model ended.

    θ₀ = θ of a fitted model, wherever names and shapes of parameters agree;      θ ← by(θ₀)

What a large set of rows without labels, or another task, has taught a network is a better start than random numbers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from ...core.errors import LikelyWarning, SpecError
from ...core.estimator import Estimator, load_estimator
from ...core.finding import find_model
from ...core.random import isolated, spread
from ...core.spec import as_spec, require
from ..game import Game
from ..objective import refuse
from ..posterior import Posterior
from ..problem import Inference, Problem
from .around import _Around
from .low_rank import LowRank, adapt, merged
from .map import MAP, Held
from .stacking import networks_of
from .taking_over import Taken, adaptable, head_of, take_over

__all__ = ["FineTune", "vocabulary_at_start"]

SHOWN = 4
"""Parameters that a message names."""


class FineTune(_Around):
    """Train `by` another inference, from the weights of a fitted model in place of random ones.

    `start` is a fitted model, or the path of the file that it was saved to, or an inference, which first fits the same
    network to the same rows. All parameters begin there whose names and shapes agree (the body of the network); others,
    and the head unless all agrees, begin as usual. Of tables of tokens and positions, the first rows that both have
    are taken over. Of several members, the one with the greatest weight is the start.

    `train` says what learns: "all" parameters, the "head" alone (the last layer, and what is new), or `LowRank(rank,
    scale)`: maps that were taken over change by scale·B·A alone, and only what is new learns freely. Then the prior
    speaks of A and B. What is found are plain weights in each case, so predictions cost what they always did, and the
    file of the model needs no other file.

    `by` is `MAP`, or an inference over it: `Ensemble`, `MCDropout`, `Distill`, `AdversarialTraining`.

    >>> from likely import Classifier, Regressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0]
    >>> base = Regressor(network="mlp([8])", inference=MAP(epochs=20), random_state=0).fit(X, y)
    >>> tuned = Classifier(network="mlp([8])", inference=FineTune(base, by=MAP(epochs=20)), random_state=0)
    >>> tuned.fit(X, ["low", "low", "high", "high"]).posterior_.info["fine_tune"]["new"]
    ['network.2.weight', 'network.2.bias']
    """

    start: Inference | Any = None
    by: Inference = MAP()
    train: LowRank | Any = "all"
    descends: ClassVar[bool] = False  # it has a start of its own

    @classmethod
    def example(cls) -> FineTune:
        """A few steps after a few steps, by changes of rank 1."""
        return cls(MAP.example(), MAP.example(), LowRank(1))

    def validate(self) -> None:
        """`by` goes on from where it is told; a model as the start is held as it is."""
        super().validate()
        set_ = object.__setattr__
        start = self.start
        if isinstance(start, os.PathLike):
            start = os.fspath(start)
        elif not isinstance(start, Inference | Held | str | None):
            model = hasattr(start, "fit") and not isinstance(start, type)
            require(model, self, "start", "a fitted model, the path of its file, or an inference")
            start = Held(start)
        set_(self, "start", start)
        if self.train not in ("all", "head"):
            if not isinstance(self.train, str | LowRank):
                require(False, self, "train", '"all", "head" or LowRank()')
            set_(self, "train", as_spec(self.train, LowRank, "train"))
        if not self.by.descends:
            names = "MAP, Ensemble, MCDropout, Distill or AdversarialTraining"
            raise SpecError(f"FineTune(by={type(self.by).__name__}()): it cannot begin at given weights; use {names}.")

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the inference inside needs, and the one that finds the start."""
        first = self.start.needs if isinstance(self.start, Inference) else frozenset()
        return self.by.needs | first

    def fit(self, problem: Problem) -> Posterior:
        """What `by` finds from there on."""
        begun, taken = self.begun(problem)
        return self._plain(problem, begun, taken, self.by.fit(begun))

    def fit_members(self, problem: Problem, seeds: list[int]) -> Posterior:
        """All members begin at the same weights; what is new is drawn for each."""
        own = problem.with_(seed=seeds[0])
        begun, taken = self.begun(own)
        return self._plain(own, begun, taken, self.by.fit_members(begun, seeds))

    def begun(self, problem: Problem) -> tuple[Problem, Taken]:
        """The problem whose modules begin at the start and learn what they are to learn, and what was taken over."""
        refuse(self.by, problem.objective)
        if isinstance(problem.objective, Game) and self.train != "all":
            raise SpecError(f'FineTune(train={self.train!r}): players of a game have no one head; use train="all".')
        start, who = self._found(problem)
        start = networks_of(start)
        parameters, buffers = start.member(int(start.weights.argmax()))
        first = problem.module()
        taken = take_over(first, parameters, buffers)
        if not taken.whole:
            raise SpecError(
                f"start ({who}) has no parameter with the name and shape of one of the network here: "
                f"it has {_listed(start.module)}; here are {_listed(first)}."
            )
        _warn_of_others(taken, first)

        def build(seed: int) -> nn.Module:
            module = problem.build(seed)
            take_over(module, parameters, buffers)
            self._freeze(module, taken, seed)
            return module

        own = problem.with_(build=build)
        text = f"{own.description.text} from {_digest(parameters)}"  # a checkpoint of another start is another fit
        own.__dict__["description"] = dataclasses.replace(own.description, text=text)
        return own, taken

    def _freeze(self, module: nn.Module, taken: Taken, seed: int) -> None:
        """Leave only that to be trained which `train` says."""
        if self.train == "all":
            return
        free = set(taken.new) | (head_of(module) if self.train == "head" else set())
        learned = {name for name, value in module.named_parameters() if value.requires_grad}
        for name, value in module.named_parameters():
            value.requires_grad_(name in free & learned)
        if isinstance(self.train, LowRank):
            with isolated(spread(seed, 5)[4]):
                adapt(module, [name for name in adaptable(module) if name in learned - free], self.train)

    def _plain(self, problem: Problem, begun: Problem, taken: Taken, posterior: Posterior) -> Posterior:
        """The posterior with plain weights, and a report of what was taken over."""
        shapes = begun.description
        trained = sum(shapes.like(name).numel() for name in shapes.trainable)
        report = {"taken": list(taken.whole), "new": list(taken.new), "trained": trained}
        info = posterior.info | {"fine_tune": report}
        module, parameters = posterior.module, posterior.parameters
        if isinstance(self.train, LowRank):
            module = problem.module()
            parameters = merged(module, parameters, self.train.scale)
        return type(posterior)(module, parameters, posterior.buffers, posterior.weights, info)

    # --- the start ----------------------------------------------------------------------------------------------
    def _found(self, problem: Problem) -> tuple[Posterior, str]:
        """The posterior to begin at, and what to call it."""
        if isinstance(self.start, Inference):
            refuse(self.start, problem.objective)
            own = problem.with_(seed=spread(problem.seed, 4)[3])
            if self.start.dtype != problem.data.dtype:
                own = own.with_(data=problem.data.to(self.start.dtype))
            return self.start.fit(own), type(self.start).__name__
        model = self._model()
        name = type(model).__name__
        posterior = getattr(model, "posterior_", None)
        if not isinstance(posterior, Posterior):
            raise SpecError(f"start is a {name} that has no network with weights to begin at.")
        ours, theirs = problem.vocabulary, getattr(model, "vocabulary_", None)
        if ours is not None and theirs is not None and ours != theirs:
            raise SpecError(f"start ({name}) has other tokens than the model here: its numbers mean other words.")
        return posterior, name

    def _model(self) -> Any:
        """The fitted model, without the tables around it."""
        if self.start is None:
            raise SpecError(
                "FineTune needs a start: a fitted model, or the path of its file (a start that was given as a model is "
                "not kept in the file of what began at it)."
            )
        start: Any = self.start
        model = load_estimator(start, find=find_model) if isinstance(start, str) else start.parts[0]
        model = getattr(model, "model_", model)
        if isinstance(model, Estimator) and not model.__sklearn_is_fitted__():
            raise SpecError(f"start is a {type(model).__name__} that is not fitted; fit it first.")
        return model


def vocabulary_at_start(inference: Any) -> Any:
    """The vocabulary of the model that an inference begins at; None if it begins at none, or at one without words.

    >>> vocabulary_at_start(MAP()) is None
    True
    """
    if isinstance(inference, str) and inference != "auto":
        inference = as_spec(inference, Inference, "inference")
    while isinstance(inference, Inference) and not isinstance(inference, FineTune):
        inference = getattr(inference, "by", None)
    if not isinstance(inference, FineTune) or isinstance(inference.start, Inference):
        return None
    return getattr(inference._model(), "vocabulary_", None)


def _listed(module: nn.Module) -> str:
    """The first parameters of a module with their shapes."""
    named = [f"{name} {tuple(value.shape)}" for name, value in module.named_parameters()]
    return ", ".join(named[:SHOWN]) + (", …" if len(named) > SHOWN else "")


def _warn_of_others(taken: Taken, module: nn.Module) -> None:
    """Say which parts of the body begin anew though the start has them, in another shape."""
    head, own = head_of(module), dict(module.named_parameters())
    unlike = [name for name in taken.other if name not in head]
    if unlike:
        name, more = unlike[0], f" and {len(unlike) - 1} more begin" if len(unlike) > 1 else " begins"
        warnings.warn(
            f"FineTune: {name}{more} anew: it is {tuple(own[name].shape)} here and {taken.other[name]} in start.",
            LikelyWarning,
            stacklevel=5,
        )


def _digest(parameters: Mapping[str, Tensor]) -> str:
    """A short name for these numbers."""
    total = hashlib.sha256()
    for name, value in parameters.items():
        total.update(name.encode())
        total.update(value.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()[:16]
