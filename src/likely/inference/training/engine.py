"""The training engine: runs the steps of a method, and takes care of what all methods need.

    state ← step(state, next batch),   t = 1 … T

A method is a `Step`: what one update does, what is worth reporting, and the state that must survive a break. The engine
counts, draws the progress bar, holds the random numbers of the run together, and writes checkpoints from which a killed
run resumes to the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from ...core import distributed
from ...core.callbacks import stopped
from ...core.checkpoint import Saver
from ...core.denormals import flushed
from ...core.progress import progress
from ...core.random import drawing
from ..fingerprint import data_fingerprint
from ..problem import Problem

__all__ = ["Step", "optimizer_state", "restore_optimizer", "train"]


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


def train(make: Callable[[list[int]], S], problem: Problem, seeds: list[int], inference: Any) -> S:
    """Run the step that `make` builds from these seeds to its end, from where an earlier run of it left off.

    The `checkpoint` and the `callbacks` are those of the inference; a checkpoint of another fit is refused.
    """
    saver = Saver(inference.checkpoint, _fingerprint(problem, inference, len(seeds)))
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
                    stop = stopped(inference.callbacks, at // step.every, at, numbers)
                    step.finished = step.finished or stop
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


def _fingerprint(problem: Problem, inference: Any, members: int) -> dict[str, Any]:
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
        **({} if problem.adversary is None else {"adversary": repr(problem.adversary)}),
    }
