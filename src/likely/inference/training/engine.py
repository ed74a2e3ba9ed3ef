"""The training engine: runs the steps of a method, and takes care of what all methods need.

    state ← step(state, next batch),   t = 1 … T

A method is a `Step`: what one update does, what is worth reporting, and the state that must survive a break. The engine
counts, draws the progress bar, holds the random numbers of the run together, and writes checkpoints from which a killed
run resumes to the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from ...core import distributed
from ...core.checkpoint import Checkpoint, Saver
from ...core.denormals import flushed
from ...core.progress import progress
from ...core.random import drawing
from ..fingerprint import data_fingerprint
from ..problem import Problem

__all__ = ["Callbacks", "Epoch", "Step", "fingerprint", "optimizer_state", "restore_optimizer", "train"]


@dataclass(frozen=True)
class Epoch:
    """What a callback sees after each epoch, or after each step of a method that has none.

    `numbers` are those that the method reports: losses (means per target, and for an ensemble over members), an ELBO, a
    bound, one loss for each player of a game.

    >>> Epoch(3, 24, {"loss": 0.5, "lr": 0.01}).loss
    0.5
    """

    epoch: int
    step: int
    numbers: Mapping[str, float]

    @property
    def loss(self) -> float | None:
        """The loss, where there is one."""
        return self.numbers.get("loss")

    @property
    def validation(self) -> float | None:
        """The loss of held-out rows, if there are any."""
        return self.numbers.get("validation")

    @property
    def lr(self) -> float | None:
        """The learning rate of the last step."""
        return self.numbers.get("lr")


Callbacks = tuple[Callable[[Epoch], bool | None], ...]
"""Called one after the other; one that returns True ends the fit."""


class Step(ABC):
    """A method of training, as the engine sees it."""

    length: int
    """Steps in all."""
    every: int = 1
    """Steps between two reports: an epoch, or 1."""
    finished: bool = False
    """Whether there is nothing left to do before all steps are done."""

    @abstractmethod
    def advance(self, at: int) -> None:
        """Do step number `at`, counted from 0."""

    @abstractmethod
    def report(self, at: int) -> dict[str, float]:
        """What to show and tell after every `every` steps; here a step may also look back on them, and finish."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that changes from step to step: numbers, tensors, and lists and dicts of them."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""


S = TypeVar("S", bound=Step)


def train(
    make: Callable[[list[int]], S],
    problem: Problem,
    seeds: list[int],
    checkpoint: Checkpoint | str | None = None,
    about: dict[str, Any] | None = None,
    callbacks: Callbacks = (),
) -> S:
    """Run the step that `make` builds from these seeds to its end, from where an earlier run of it left off.

    `about` tells one fit from another (see `fingerprint`): a checkpoint of another is refused.
    """
    saver = Saver(checkpoint, about or {})
    saved = saver.read()
    if saved is not None:
        if problem.seeded:
            saver.refuse_seeds(saved["seeds"], seeds)
        seeds = saved["seeds"]
    random = torch.Generator().manual_seed(seeds[0] + distributed.rank())  # dropout, noise, augmentation
    with drawing(random), flushed():
        step, at = make(seeds), 0
        if saved is not None:
            step.restore(saved["step"])
            random.set_state(saved["random"])
            step.finished, at = saved["finished"], saved["at"]

        def write() -> None:
            now = {"at": at, "finished": step.finished, "random": random.get_state()}
            saver.write({"seeds": seeds, "step": step.state(), **now})

        with progress(problem.title, step.length // step.every, show=problem.verbose) as report:
            while at < step.length and not step.finished:
                step.advance(at)
                at += 1
                if at % step.every == 0 or step.finished:
                    numbers = step.report(at)
                    report(at // step.every, **{name: value for name, value in numbers.items() if name != "lr"})
                    stops = [callback(Epoch(at // step.every, at, numbers)) for callback in callbacks]
                    step.finished = step.finished or any(stop is True for stop in stops)
                if saver.due() and not step.finished:
                    write()
        step.finished = True
        if saver.checkpoint is not None:
            write()
    return step


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What an optimiser remembers of its steps, and the rates it has now."""
    return {"state": optimizer.state_dict()["state"], "lr": [group["lr"] for group in optimizer.param_groups]}


def restore_optimizer(optimizer: torch.optim.Optimizer, kept: dict[str, Any]) -> None:
    """The inverse of `optimizer_state`."""
    groups = optimizer.state_dict()["param_groups"]
    for group, rate in zip(groups, kept["lr"], strict=True):
        group["lr"] = rate
    optimizer.load_state_dict({"state": kept["state"], "param_groups": groups})


def fingerprint(problem: Problem, inference: Any, members: int) -> dict[str, Any]:
    """What tells one fit from another; nothing, where there is no checkpoint to compare it with."""
    if inference.checkpoint is None:
        return {}
    own = {name: value for name, value in {"callbacks": (), "augment": None}.items() if hasattr(inference, name)}
    return {
        "inference": repr(inference.replace(checkpoint=None, **own)),
        "members": members,
        "likelihood": repr(problem.objective),
        "network": problem.description.text,
        "prior": repr(problem.prior),
        "data": data_fingerprint(problem.data),
    }
