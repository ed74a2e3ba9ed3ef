"""The step of MAP and Ensemble: descend the loss of a batch, for one member or for many at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import DataError, TrainingError
from ...core.random import normal_like, spread
from ...optim import clip_norm_
from ..dataset import Batch, Dataset
from ..posterior import Posterior
from ..problem import Problem
from .averaging import Averaged
from .batches import Batches
from .early_stopping import Best
from .engine import Step, optimizer_state, restore_optimizer
from .perturb import augmented, noisy
from .precision import Half
from .program import Program, Single, Stacked
from .truncation import truncated

if TYPE_CHECKING:
    from .map import MAP

__all__ = ["Descent", "Epoch"]


@dataclass(frozen=True)
class Epoch:
    """What a callback sees after each epoch: losses are means per target, and for an ensemble means over members."""

    epoch: int
    step: int
    loss: float
    validation: float | None
    lr: float


class Descent(Step):
    """One run of training: everything that changes, so that it can be written to a checkpoint and taken up again."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int]) -> None:
        self.problem, self.spec = problem, spec
        self.data, self.validation = _split(problem, spec, seeds[0])
        modules = [problem.module(seed) for seed in seeds]
        self.program: Program = Single(problem, modules[0]) if len(seeds) == 1 else Stacked(problem, modules)
        self.program.flat.grad = self.program.gradient
        self.optimizer = spec.optimizer.build([self.program.flat])
        orders = [spread(seed, 1)[0] for seed in seeds]
        self.batches = Batches(self.data, spec.batch_size, orders, replacement=spec.replacement)
        self.every, self.length = self.batches.count, spec.epochs * self.batches.count
        self.total_weight = self.data.total_weight()
        self.world = distributed.world()
        self.proximal = self.program.sparse and not spec.optimizer.needs_closure
        self.epoch_loss = 0.0  # mean over the batches so far, and over members
        self.history: dict[str, list[Any]] = {"loss": [], "lr": []} | ({"validation": []} if self.validation else {})
        self.best = Best(len(seeds), spec.patience)
        self.average = None
        if spec.average is not None:
            self.average = Averaged(spec.average, self.program.flat, self.length, self.every)
        self.program.half = Half.on(self.program.flat.device, spec.precision)
        changes = spec.augment is not None or (spec.noise is not None and spec.noise.inputs > 0)
        self.rows = self.data if changes else self.program.prepared(self.data)

    # --- one step -----------------------------------------------------------------------------------------------
    def advance(self, at: int) -> None:
        rate = self._rate(at)
        batch, fraction = self._take()
        if self.spec.optimizer.needs_closure:
            before = self.program.flat.clone()
            loss = cast(Tensor, self.optimizer.step(lambda: self._evaluate(batch, fraction)))  # type: ignore[arg-type, return-value]
            if not bool(self.program.flat.isfinite().all()):  # a curvature that rounding made: begin without one
                self.program.flat.copy_(before)
                self.optimizer = self.spec.optimizer.build([self.program.flat])
        else:
            loss = self._evaluate(batch, fraction)
            self.optimizer.step()
        if self.proximal:
            self._shrink()
        value = loss.item() / self.program.members
        if not math.isfinite(value):
            raise TrainingError(
                f"The loss is {value:g} at step {at + 1} (epoch {at // self.every + 1}) with learning rate "
                f"{rate:g}. Try a smaller learning rate, clip_norm=1.0, or standardised inputs."
            )
        self.epoch_loss += value / self.every
        if self.average is not None:
            self.average.take(self.program.flat, at + 1)
        if self.spec.tol is not None and self.every == 1:
            self.finished = self._stuck(value) or self._gradient_norm() <= self.spec.tol

    def _gradient_norm(self) -> float:
        gradient = self.program.flat.grad
        assert gradient is not None
        return float(gradient.double().norm())

    def _rate(self, at: int) -> float:
        rate = self.spec.optimizer.lr
        if self.spec.schedule is not None:
            rate = rate * self.spec.schedule.factor(at, self.length)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
        return rate

    def _take(self) -> tuple[Batch, float]:
        """This process's part of the next batch, and which fraction of all rows the whole batch is."""
        batch = self.rows.batch(self.batches.next())
        if self.spec.augment is not None:
            batch = augmented(self.spec.augment, batch, self.data.positions, self.program.members)
        if self.spec.noise is not None and self.spec.noise.inputs:
            batch = batch._replace(x=noisy(batch.x, self.spec.noise.inputs))
        return batch, self.batches.fraction

    def _evaluate(self, batch: Batch, fraction: float) -> Tensor:
        """The batch's estimate of (−Σ w log p(y | η) − log p(θ)) / Σ w over all processes, and its gradient."""
        program, noise = self.program, self.spec.noise
        program.flat.grad = program.gradient  # an optimiser with a line search may have put another one there
        before = program.flat.clone() if noise is not None and noise.weights else None
        if noise is not None and before is not None:
            program.flat.add_(normal_like(before), alpha=noise.weights)
        per_target, per_prior = 1 / (self.total_weight * fraction), 1 / (self.total_weight * self.world)
        if self.spec.truncate is None:
            loss = program.evaluate(batch, per_target, per_prior)
        else:
            with truncated(program.module, self.spec.truncate):
                loss = program.evaluate(batch, per_target, per_prior)
        if before is not None:  # subtracting the noise again would leave rounding
            program.flat.copy_(before)
        if program.l1 is not None and not self.proximal:
            rate = program.l1 / (self.total_weight * self.world)
            program.gradient.addcmul_(rate, program.flat.sign())
            loss = loss + torch.dot(rate, program.flat.abs())
        if self.world > 1:  # what a line search decides by must be the same in every process
            distributed.sum_(program.gradient, loss)
        if self.spec.clip_norm is not None:
            gradients = [value.grad for value in program.parameters.values()]
            clip_norm_(gradients, self.spec.clip_norm, stacked=program.stacked)
        if noise is not None and noise.gradients:
            gap = normal_like(program.gradient)
            distributed.broadcast_(gap)  # every process takes the same step
            program.gradient.add_(gap, alpha=noise.gradients)
        return loss

    def _stuck(self, loss: float) -> bool:
        """Whether a line search found no step, or its loss is the last one to the bit: it never will find another."""
        if not self.spec.optimizer.needs_closure:
            return False
        return getattr(self.optimizer, "step_size", None) == 0 or self.history["loss"][-1:] == [loss]

    @torch.no_grad()
    def _shrink(self) -> None:
        """The proximal step of −λ|θ|: soft-thresholding by λ times the step that each parameter has just taken."""
        flat, reach = self.program.flat, self.spec.optimizer.reach(self.optimizer, self.program.flat)
        assert self.program.l1 is not None
        flat.copy_(flat.sign() * (flat.abs() - self.program.l1 / self.total_weight * reach).clamp_min(0))

    # --- the end of an epoch ------------------------------------------------------------------------------------
    def report(self, at: int) -> dict[str, float]:
        self.history["loss"].append(self.epoch_loss)
        self.history["lr"].append(float(self.optimizer.param_groups[0]["lr"]))
        self.epoch_loss = 0.0
        if self.validation is not None:
            with self._averaged():
                scores = self.program.score(self.validation)
                distributed.broadcast_(scores)
                self.finished = self.best.update(scores, self._tensors()) or self.finished
            self.history["validation"].append(float(scores.mean()))
        last = {name: values[-1] for name, values in self.history.items()}
        event = Epoch(at // self.every, at, last["loss"], last.get("validation"), last["lr"])
        stops = [callback(event) for callback in self.spec.callbacks]
        self.finished = self.finished or any(stop is True for stop in stops)
        return {name: value for name, value in last.items() if name != "lr"}

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
            "optimizer": optimizer_state(self.optimizer),
            "batches": self.batches.state(),
            "epoch_loss": self.epoch_loss,
            "history": self.history,
            "best": self.best.state(),
            "average": None if self.average is None else self.average.state(),
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        self.program.flat.copy_(state["flat"])
        for own, kept in zip(self.program.buffers.values(), state["buffers"], strict=True):
            own.copy_(kept)
        restore_optimizer(self.optimizer, state["optimizer"])
        self.batches.restore(state["batches"])
        self.best.restore(state["best"])
        if self.average is not None:
            self.average.restore(state["average"])
        self.epoch_loss, self.history = state["epoch_loss"], state["history"]

    def posterior(self) -> Posterior:
        """The members, as they are now or as they validated best."""
        program, names = self.program, [*self.program.parameters, *self.program.buffers]
        with self._averaged():
            tensors = [value.detach().clone() for value in (self.best.tensors or self._tensors())]
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


def _split(problem: Problem, spec: MAP, seed: int) -> tuple[Dataset, Dataset | None]:
    """The rows to train on and those to validate on."""
    data, wanted = problem.data, spec.validation
    if wanted is None and spec.patience is None:
        return data, None
    if wanted is not None and not isinstance(wanted, float):
        parts = wanted.parts
        if len(parts) not in (2, 3) or problem.encode is None:
            raise DataError("validation must be a fraction, (X, y), or (X, y, sample_weight).")
        return data, problem.encode(parts[0], parts[1], parts[2] if len(parts) == 3 else None)
    fraction = 0.1 if wanted is None else wanted
    held = max(1, round(len(data) * fraction))
    if held >= len(data):
        raise DataError(
            f"validation={fraction:g} of {len(data)} rows leaves nothing to train on; give (X, y) or more rows."
        )
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(spread(seed, 2)[1]))
    order = order.to(data.x.device)
    return data.subset(order[held:]), data.subset(order[:held])
