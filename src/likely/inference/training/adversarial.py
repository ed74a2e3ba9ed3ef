"""Adversarial training: every step is taken on the rows of its batch as an attack has changed them.

min over θ of  Σᵢ wᵢ max {−log p(yᵢ | η(xᵢ + δ; θ)) : ‖δ‖ₚ ≤ r}  −  log p(θ)

pgd      the inner maximum by the steps of an attack, before each step of θ
single   by one step of 1.25 r from a point drawn from the ball: a step of θ costs twice what it does without
free     a batch is met several times, and each pass back moves θ down and δ up: a step costs what it does without
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError, SpecError
from ...core.frozen import freeze
from ...core.spec import as_spec, is_integer, require
from ...data.rows import Rows
from ...optim.ascent import FLAT, PGD, Attack
from ...optim.ball import project, steepest
from ...optim.bounds import Bounds, bounds_of, check_radius
from ..dataset import Batch
from ..posterior import Posterior
from ..problem import Inference, Problem
from .around import _Around
from .map import MAP
from .program import Program

__all__ = ["AdversarialTraining", "Adversary", "Opponent"]

ENDS = (-math.inf, math.inf)
SINGLE = 1.25
"""The one step of the single form, in radii: longer than the ball, since it starts anywhere inside."""


class AdversarialTraining(_Around):
    """Train `by` another inference on rows that an `attack`, FGSM or PGD, changes before each step.

    The radius of the attack is in the units of X, and `bounds=(low, high)`, numbers or arrays of the shape of a row,
    keep the changed rows in their range; rows of X beyond them are refused. The attack sees the network as it predicts,
    without dropout. The radius, and a `step_size` of the attack, grow to theirs over the fraction `warmup` of the
    steps: a network that meets the largest changes from the first step on may never leave a constant answer. `form`
    "single" and "free" use the norm and the radius of the attack and no more; "free" meets each batch `replays` times,
    so that as many steps pass over the rows so many times less often. Held-out rows of `validation` stay as they are.
    A step of a sequence, or a node of a graph, has a ball of its own.

    >>> from likely import Classifier
    >>> from likely.robust import PGD
    >>> X, y = [[0.0], [0.2], [1.8], [2.0]], ["a", "a", "b", "b"]
    >>> inference = AdversarialTraining("map(adam(0.1), epochs=30)", PGD(0.5, steps=3))
    >>> Classifier(network="mlp([8])", inference=inference, random_state=0).fit(X, y).predict([[0.5], [1.5]])
    array(['a', 'b'], dtype='<U1')
    """

    by: Inference = MAP()
    attack: Attack = PGD(0.1, steps=7)
    form: Literal["pgd", "free", "single"] = "pgd"
    bounds: tuple[Any, Any] | None = None
    replays: int = 4
    warmup: float = 0.2
    asks: ClassVar[frozenset[str]] = frozenset({"likelihood"})

    @classmethod
    def example(cls) -> AdversarialTraining:
        """Two steps of the attack for each of a few steps."""
        return cls(MAP.example(), PGD(0.05, steps=2))

    def validate(self) -> None:
        """The inference inside trains by steps of gradients; the attack stays within a radius."""
        super().validate()
        object.__setattr__(self, "attack", as_spec(self.attack, Attack, "attack"))
        require(isinstance(_innermost(self.by), MAP), self, "by", "MAP, or another inference by MAP, such as Ensemble")
        require(hasattr(self.attack, "ascend"), self, "attack", "FGSM or PGD, which stay within a radius")
        require(self.form in ("pgd", "free", "single"), self, "form", '"pgd", "free" or "single"')
        if self.form != "pgd":
            require(self.attack.p in (1, 2, math.inf), self, "attack", f"of norm inf, 2 or 1 where form={self.form!r}")
        object.__setattr__(self, "bounds", _plain(self.bounds))
        require(_ordered(self.bounds), self, "bounds", "(low, high) with low below high, or None")
        require(is_integer(self.replays), self, "replays", "an integer, 1 or more")
        require(0 <= self.warmup <= 1, self, "warmup", "a fraction of the steps, from 0 to 1")

    def fit(self, problem: Problem) -> Posterior:
        """What `by` finds against the attack."""
        return self.by.fit(self.against(problem))

    def fit_members(self, problem: Problem, seeds: list[int]) -> Posterior:
        """Members are attacked each by itself, in one stacked program if `by` has one."""
        return self.by.fit_members(self.against(problem), seeds)

    def against(self, problem: Problem) -> Problem:
        """The problem whose training meets the attack."""
        x = problem.data.x
        if problem.data.integer:
            raise DataError("X has tokens (integers), which have no small changes; AdversarialTraining takes numbers.")
        if isinstance(x, Rows) and self.form == "free":
            raise DataError(f'X has {x.kind}s; form="free" takes rows of one shape: use "pgd" or "single".')
        numbers = x.features if isinstance(x, Rows) else x
        bounds = bounds_of(self.bounds, numbers)
        radius: float = self.attack.radius  # type: ignore[attr-defined]
        check_radius(radius, self.attack.p, numbers, bounds)
        if self.form == "free" and _innermost(self.by).optimizer.needs_closure:
            raise SpecError('form="free" moves θ and the rows by one gradient; use an optimiser such as Adam or SGD.')
        met = Adversary(self.attack, self.form, self.bounds, self.replays, self.warmup, bounds)
        return problem.with_(adversary=met)


def _plain(bounds: Any) -> Any:
    """Bounds of which arrays have become tuples, which specs can compare and files can hold."""
    if not isinstance(bounds, tuple | np.ndarray | Tensor):
        return bounds
    parts = (part.detach().cpu() if isinstance(part, Tensor) else part for part in bounds)
    return freeze([np.asarray(part).tolist() for part in parts])


def _ordered(bounds: Any) -> bool:
    if bounds is None:
        return True
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        return False
    low, high = (np.asarray(end if part is None else part, float) for part, end in zip(bounds, ENDS, strict=True))
    return bool((low <= high).all() and (low < high).any())


def _innermost(inference: Any) -> Any:
    while not isinstance(inference, MAP) and isinstance(getattr(inference, "by", None), Inference):
        inference = inference.by
    return inference


@dataclass(frozen=True)
class Adversary:
    """How training changes rows against the model; its repr tells one fit from another."""

    attack: Any
    form: str
    given: Any
    replays: int
    warmup: float
    bounds: Bounds = field(repr=False)  # tensors, of which a repr may leave out the middle

    def against(self, program: Program, steps: int) -> Opponent:
        """What meets one run of training of so many steps."""
        if self.form == "free":
            return _Free(program, self, steps)
        attack = self.attack
        if self.form == "single":
            attack = PGD(attack.radius, attack.norm, steps=1, step_size=SINGLE * attack.radius)
        return Opponent(program, attack, self, steps)


class Opponent:
    """Changes each batch before the step on it."""

    def __init__(self, program: Program, attack: Any, adversary: Adversary, steps: int) -> None:
        self.program, self.attack, self.bounds = program, attack, adversary.bounds
        self.grown = adversary.warmup * steps
        self.taken = 0

    @property
    def reached(self) -> float:
        """The fraction of the radius at this step."""
        return min(1.0, (self.taken + 1) / max(1.0, self.grown))

    def replayed(self) -> tuple[Batch, float] | None:
        """The batch of the last step and its fraction of all rows, where it is to be met again."""
        return None

    def met(self, batch: Batch, fraction: float) -> Batch:
        """A new batch, changed."""
        program, objective = self.program, self.program.problem.objective
        rows = batch.x.features if isinstance(batch.x, Rows) else batch.x
        shape = rows.shape
        lead = 1 + program.stacked

        def gradient(point: Tensor) -> Tensor:
            with torch.enable_grad():
                own = point.detach().requires_grad_()
                x = batch.x.with_features(own) if isinstance(batch.x, Rows) else own.view(shape)
                output = program.output(objective.inputs(batch._replace(x=x)))
                loss = -program.log_likelihood(output, batch).sum()
                if not loss.requires_grad:
                    raise SpecError(FLAT)
                (slope,) = torch.autograd.grad(loss, own, allow_unused=True)
            return torch.zeros_like(own) if slope is None else slope

        program.module.eval()
        attack = self.attack if self.reached == 1 else self.attack.scaled(self.reached)
        changed = attack.ascend(gradient, rows.flatten(0, lead - 1), self.bounds).view(shape)
        program.module.train()
        return batch._replace(x=batch.x.with_features(changed) if isinstance(batch.x, Rows) else changed)

    def learn(self) -> None:
        """What the step has told of the rows."""
        self.taken += 1

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"taken": self.taken}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.taken = state["taken"]


class _Free(Opponent):
    """δ goes on from step to step, also from one batch to the next: by place, not by row."""

    def __init__(self, program: Program, adversary: Adversary, steps: int) -> None:
        super().__init__(program, adversary.attack, adversary, steps)
        self.replays = adversary.replays
        self.left = 0
        self.batch: Batch | None = None
        self.delta: Tensor | None = None
        self.fraction = 1.0
        program.passes = None  # those by hand know nothing of gradients in x

    def replayed(self) -> tuple[Batch, float] | None:
        if not self.left or self.batch is None:
            return None
        self.left -= 1
        return self._changed(self.batch), self.fraction

    def met(self, batch: Batch, fraction: float) -> Batch:
        self.left, self.batch, self.fraction = self.replays - 1, batch, fraction
        lead = 1 + self.program.stacked
        before = self.delta
        self.delta = torch.zeros_like(batch.x)
        if before is not None:
            rows = min(before.shape[lead - 1], batch.x.shape[lead - 1])
            self.delta.narrow(lead - 1, 0, rows).copy_(before.narrow(lead - 1, 0, rows))
        return self._changed(batch)

    def _changed(self, batch: Batch) -> Batch:
        assert self.delta is not None
        self.point = self.bounds.clip(batch.x + self.delta).requires_grad_()
        return batch._replace(x=self.point)

    def learn(self) -> None:
        assert self.batch is not None
        gradient = self.point.grad
        if gradient is None:
            raise SpecError(FLAT)
        lead, shape = 1 + self.program.stacked, self.point.shape
        flat = (self.point.detach() - self.batch.x).flatten(0, lead - 1)
        radius, norm = self.reached * self.attack.radius, self.attack.p
        moved = flat + radius * steepest(gradient.flatten(0, lead - 1), norm)
        self.delta = project(moved, radius, norm).view(shape)
        super().learn()

    def state(self) -> dict[str, Any]:
        batch = None if self.batch is None else [self.batch.x, self.batch.y, self.batch.weight]
        own = {"left": self.left, "delta": self.delta, "fraction": self.fraction, "batch": batch}
        return super().state() | own

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.left, self.delta, self.fraction = state["left"], state["delta"], state["fraction"]
        self.batch = None if state["batch"] is None else Batch(*state["batch"])
