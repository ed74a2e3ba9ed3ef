"""A run of gradient training: what descent on one loss and the rounds of a game have in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core import distributed
from ...core.random import spread
from ...optim import AdamW, Optimizer
from ..dataset import Batch, Dataset
from ..posterior import Posterior
from ..problem import Problem
from .averaging import Averaged
from .batches import Batches
from .engine import Step, optimizer_state, restore_optimizer
from .perturb import augmented, noisy
from .precision import Half
from .program import Program, Single, Stacked

if TYPE_CHECKING:
    from .map import MAP

__all__ = ["Run"]


class Run(Step):
    """θ, its optimisers, the rows of each step, averages and history: everything that a checkpoint must keep."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int], data: Dataset) -> None:
        self.problem, self.spec, self.data = problem, spec, data
        modules = [problem.module(seed) for seed in seeds]
        self.program: Program = Single(problem, modules[0]) if len(seeds) == 1 else Stacked(problem, modules)
        self.rules = self._rules()
        self.optimizers = [self._built(rule, part) for rule, part in self.rules]
        orders = [spread(seed, 1)[0] for seed in seeds]
        self.batches = Batches(data, spec.batch_size, orders, replacement=spec.replacement)
        self.every, self.length = self.batches.count, spec.epochs * self.batches.count
        if spec.steps is not None:  # reports are as far apart as epochs, more or less, and the last one is at the end
            self.every, self.length = -(-spec.steps // max(1, round(spec.steps / self.every))), spec.steps
        self.total_weight = data.total_weight()
        self.world = distributed.world()
        self.history: dict[str, list[Any]] = {}
        self.average = None
        if spec.average is not None:
            self.average = Averaged(spec.average, self.program.flat, self.length, self.every)
        self.program.half = Half.on(self.program.flat.device, spec.precision)
        self.opponent = None if problem.adversary is None else problem.adversary.against(self.program, self.length)
        changes = spec.augment is not None or (spec.noise is not None and spec.noise.inputs > 0)
        changes = changes or self.opponent is not None
        self.rows = data if changes else self.program.prepared(data)

    def _rules(self) -> list[tuple[Optimizer, Tensor]]:
        """The optimisers to build, each with its part of the flat vector, whose gradient it has."""
        self.program.flat.grad = self.program.gradient
        return [(self.spec.optimizer, self.program.flat)]

    def _built(self, rule: Optimizer, part: Tensor) -> torch.optim.Optimizer:
        """The optimiser of a part of the flat vector; where not all of it decays, it is told what does."""
        optimizer = rule.build([part])
        if isinstance(rule, AdamW):
            first = part.storage_offset()
            decaying = self.program.decaying(rule.only_weights)[first : first + part.numel()]
            kinds, sizes = decaying.unique_consecutive(return_counts=True)
            runs = [(size, kind > 0) for size, kind in zip(sizes.tolist(), kinds.tolist(), strict=True)]
            if not bool(decaying.all()):
                optimizer.param_groups[0].update(weight_decay=rule.weight_decay, runs=runs)
        return optimizer

    # --- parts of a step ----------------------------------------------------------------------------------------
    def _set_rates(self, at: int) -> None:
        """Give every optimiser the rate of step `at`."""
        if self.spec.schedule is None:
            return
        factor = self.spec.schedule.factor(at, self.length)
        for (rule, _), optimizer in zip(self.rules, self.optimizers, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rule.lr * factor

    @property
    def rate(self) -> float:
        """The learning rate now, of the first optimiser."""
        return float(self.optimizers[0].param_groups[0]["lr"])

    def _take(self) -> tuple[Batch, float]:
        """This process's part of the next batch, and which fraction of all rows the whole batch is."""
        again = None if self.opponent is None else self.opponent.replayed()
        if again is not None:
            return again
        batch = self.batches.take(self.rows)
        if self.spec.augment is not None:
            batch = augmented(self.spec.augment, batch, self.data.positions, self.program.members)
        if self.spec.noise is not None and self.spec.noise.inputs:
            batch = batch._replace(x=noisy(batch.x, self.spec.noise.inputs))
        if self.opponent is not None:
            batch = self.opponent.met(batch, self.batches.fraction)
        return batch, self.batches.fraction

    def _over(self, at: int) -> float:
        """By what to multiply a mean over `every` steps that was cut short at step `at`, the last one."""
        return self.every / ((at - 1) % self.every + 1)

    def _record(self, numbers: dict[str, float]) -> dict[str, float]:
        """Add the numbers of an epoch to the history."""
        for name, value in numbers.items():
            self.history.setdefault(name, []).append(value)
        return numbers

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Inside, θ is the average of the weights, if there is one, and layers have the statistics that go with it."""
        if self.average is None or not self.average.taken:
            yield
            return
        own = [self.program.flat, *self.program.buffers.values()]
        before = [value.clone() for value in own]
        self.program.flat.copy_(self.average.mean)
        self.program.settle(self.data)
        try:
            yield
        finally:
            for value, kept in zip(own, before, strict=True):
                value.copy_(kept)

    def _tensors(self) -> list[Tensor]:
        return [*self.program.parameters.values(), *self.program.buffers.values()]

    # --- state --------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        return {
            "flat": self.program.flat,
            "buffers": list(self.program.buffers.values()),
            "optimizers": [optimizer_state(optimizer) for optimizer in self.optimizers],
            "batches": self.batches.state(),
            "history": self.history,
            "average": None if self.average is None else self.average.state(),
            **({} if self.opponent is None else {"opponent": self.opponent.state()}),
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.program.flat.copy_(state["flat"])
        for own, kept in zip(self.program.buffers.values(), state["buffers"], strict=True):
            own.copy_(kept)
        for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
            restore_optimizer(optimizer, kept)
        self.batches.restore(state["batches"])
        if self.average is not None:
            self.average.restore(state["average"])
        if self.opponent is not None:
            self.opponent.restore(state["opponent"])
        self.history = state["history"]

    def posterior(self, chosen: list[Tensor] | None = None) -> Posterior:
        """The members as they are now, or as these tensors have them."""
        program, names = self.program, [*self.program.parameters, *self.program.buffers]
        with self._averaged():
            tensors = [value.detach().clone() for value in (chosen or self._tensors())]
        tensors = tensors if program.stacked else [value.unsqueeze(0) for value in tensors]
        distributed.broadcast_(*tensors)
        state = dict(zip(names, tensors, strict=True))
        frozen = {
            name: value.detach().expand(program.members, *value.shape)
            for name, value in program.module.named_parameters()
            if name not in program.parameters
        }
        parameters = {name: state[name] for name in program.parameters} | frozen
        buffers = {name: state[name] for name in program.buffers}
        return Posterior(program.module, parameters, buffers, info={"history": self.history})
