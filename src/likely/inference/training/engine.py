"""The training engine behind MAP and Ensemble: epochs of mini-batches, one program for one or many members."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from ...core import distributed
from ...core.denormals import flushed
from ...core.errors import DataError, TrainingError
from ...core.progress import progress
from ...core.random import drawing, normal_like, spread
from ...optim import clip_norm_
from ..checkpoint import Saver, data_fingerprint
from ..dataset import Batch, Dataset
from ..posterior import Posterior
from ..problem import Problem
from .early_stopping import Best
from .perturb import augmented, noisy, nudge
from .program import Program, Single, Stacked
from .truncation import truncated

if TYPE_CHECKING:
    from .map import MAP

__all__ = ["Epoch", "train"]


@dataclass(frozen=True)
class Epoch:
    """What a callback sees after each epoch: losses are means per target, and for an ensemble means over members."""

    epoch: int
    step: int
    loss: float
    validation: float | None
    lr: float


def train(problem: Problem, spec: MAP, seeds: list[int]) -> Posterior:
    """Train one member for each seed and return them as a posterior. Members are stacked if there are several."""
    run = _Run(problem, spec, seeds)
    with drawing(run.random), truncated(run.program.module, spec.truncate), flushed():
        run.restore()
        run.loop()
    return run.posterior()


class _Run:
    """One training run: everything that changes, so that it can be written to a checkpoint and taken up again."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int]) -> None:
        saver = Saver(spec.checkpoint, _fingerprint(problem, spec, len(seeds)))
        self.saved = saver.read()
        if self.saved is not None:
            if problem.seeded:
                saver.refuse_seeds(self.saved["seeds"], seeds)
            seeds = self.saved["seeds"]
        self.problem, self.spec, self.seeds, self.saver = problem, spec, seeds, saver
        self.data, self.validation = _split(problem, spec, seeds[0])
        self.program = Single(problem, seeds[0]) if len(seeds) == 1 else Stacked(problem, seeds)
        self.optimizer = spec.optimizer.build(list(self.program.parameters.values()))
        self.generators = [torch.Generator().manual_seed(spread(seed, 1)[0]) for seed in seeds]
        self.random = torch.Generator().manual_seed(seeds[0] + distributed.rank())  # dropout, noise, augmentation
        self.batch_size = min(spec.batch_size or len(self.data), len(self.data))
        self.batches = math.ceil(len(self.data) / self.batch_size)
        self.total_weight = self.data.total_weight()
        self.l1 = _l1_rates(problem, self.program)
        self.proximal = bool(self.l1) and not spec.optimizer.needs_closure
        self.epoch = self.batch = 0
        self.orders: Tensor | None = None
        self.epoch_loss = 0.0  # mean over the batches so far, and over members
        self.world = distributed.world()
        self.history: dict[str, list[Any]] = {"loss": [], "lr": []} | ({"validation": []} if self.validation else {})
        self.best = Best(len(seeds), spec.patience)
        self.finished = False

    # --- the loop -----------------------------------------------------------------------------------------------
    def loop(self) -> None:
        problem, spec = self.problem, self.spec
        with progress(problem.title, spec.epochs, show=problem.verbose) as report:
            while self.epoch < spec.epochs and not self.finished:
                self.run_epoch()
                numbers = {"loss": self.history["loss"][-1]}
                if self.validation is not None:
                    numbers["validation"] = self.history["validation"][-1]
                report(self.epoch, **numbers)
        self.finished = True
        self.saver.write(self.state())

    def run_epoch(self) -> None:
        if self.orders is None:
            self.orders = self.shuffle()
        while self.batch < self.batches and not self.finished:
            self.step()
            self.batch += 1
            if self.saver.due() and not self.finished:
                self.saver.write(self.state())
        self.end_epoch()

    def step(self) -> None:
        step = self.epoch * self.batches + self.batch
        rate = self.spec.optimizer.lr
        if self.spec.schedule is not None:
            rate = rate * self.spec.schedule.factor(step, self.spec.epochs * self.batches)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
        batch, share = self.take()
        parameters = list(self.program.parameters.values())
        noise = self.spec.noise

        def closure() -> Tensor:
            self.optimizer.zero_grad(set_to_none=True)
            before = nudge(parameters, noise.weights) if noise is not None and noise.weights else None
            loss = self.objective(batch, share)
            loss = loss.sum() if self.program.members > 1 else loss
            loss.backward()
            if before is not None:
                torch._foreach_copy_([p.data for p in parameters], before)
            self.treat_gradients(parameters)
            return self.gathered(loss)

        loss = cast(Tensor, self.optimizer.step(closure))  # type: ignore[arg-type]
        if self.proximal:
            self.shrink()
        value = loss.item() / self.program.members
        if not math.isfinite(value):
            raise TrainingError(
                f"The loss is {value:g} at step {step + 1} (epoch {self.epoch + 1}) with learning rate "
                f"{rate:g}. Try a smaller learning rate, clip_norm=1.0, or standardised inputs."
            )
        self.epoch_loss += value / self.batches
        if self.spec.tol is not None and self.batches == 1:
            self.finished = self.stuck(value) or self.gradient_norm(parameters) <= self.spec.tol

    def stuck(self, loss: float) -> bool:
        """Whether a line search found no step, or its loss is the last one to the bit: it never will find another."""
        if not self.spec.optimizer.needs_closure:
            return False
        return getattr(self.optimizer, "step_size", None) == 0 or self.history["loss"][-1:] == [loss]

    def objective(self, batch: Batch, share: float) -> Tensor:
        """The batch's estimate of (−Σ w log p(y | η) − log p(θ)) / Σ w, per member; this process's part of it."""
        loss = self.program.loss(batch, 1 / (self.total_weight * share), 1 / self.total_weight / self.world)
        if self.l1 and not self.proximal:
            for name, value in self.program.parameters.items():
                loss = loss + self.l1.get(name, 0.0) / self.total_weight / self.world * value.abs().sum()
        return loss

    def take(self) -> tuple[Batch, float]:
        """This process's part of the next batch, and which share of all rows the whole batch is."""
        first = self.batch * self.batch_size
        count = min(self.batch_size, len(self.data) - first)
        if self.orders is None or (self.batches == 1 and self.world == 1 and self.program.members == 1):
            batch = self.data.batch(slice(None))
        else:
            part = distributed.share(count) if self.world > 1 else slice(count)
            batch = self.data.batch(self.orders[..., first : first + count][..., part])
        if self.spec.augment is not None:
            batch = augmented(self.spec.augment, batch, self.data.positions, self.program.members)
        if self.spec.noise is not None and self.spec.noise.inputs:
            batch = batch._replace(x=noisy(batch.x, self.spec.noise.inputs))
        return batch, count / len(self.data)

    def shuffle(self) -> Tensor:
        """The order of rows in this epoch: (n,), or (members, n)."""
        orders = [self.data.order(g, self.batch_size) for g in self.generators]
        stacked = torch.stack(orders) if self.program.members > 1 else orders[0]
        return stacked.to(self.data.x.device)

    def treat_gradients(self, parameters: list[Tensor]) -> None:
        if self.world > 1:
            distributed.sum_(*[p.grad for p in parameters if p.grad is not None])
        if self.spec.clip_norm is not None:
            clip_norm_([p.grad for p in parameters], self.spec.clip_norm, stacked=self.program.members > 1)
        if self.spec.noise is not None and self.spec.noise.gradients:
            for p in parameters:
                if p.grad is not None:
                    noise = normal_like(p.grad)
                    distributed.broadcast_(noise)  # every process takes the same step
                    p.grad += self.spec.noise.gradients * noise

    def gathered(self, loss: Tensor) -> Tensor:
        """The loss over all processes: what a line search decides by must be the same in each of them."""
        total = loss.detach()
        if self.world > 1:
            distributed.sum_(total)
        return total

    def gradient_norm(self, parameters: list[Tensor]) -> float:
        return math.sqrt(sum(float(p.grad.double().square().sum()) for p in parameters if p.grad is not None))

    def shrink(self) -> None:
        """The proximal step of −λ|θ|: soft-thresholding by λ times the step each number has just taken."""
        with torch.no_grad():
            for name, value in self.program.parameters.items():
                rate = self.l1.get(name, 0.0) / self.total_weight
                if rate:
                    reach = self.spec.optimizer.reach(self.optimizer, value)
                    value.copy_(value.sign() * (value.abs() - rate * reach).clamp_min(0))

    # --- the end of an epoch ------------------------------------------------------------------------------------
    def end_epoch(self) -> None:
        self.epoch += 1
        self.batch, self.orders = 0, None
        self.history["loss"].append(self.epoch_loss)
        self.history["lr"].append(float(self.optimizer.param_groups[0]["lr"]))
        self.epoch_loss = 0.0
        if self.validation is not None:
            scores = self.program.score(self.validation)
            distributed.broadcast_(scores)
            self.history["validation"].append(float(scores.mean()))
            tensors = [*self.program.parameters.values(), *self.program.buffers.values()]
            self.finished = self.best.update(scores, tensors) or self.finished
        last = self.history
        event = Epoch(
            epoch=self.epoch,
            step=self.epoch * self.batches,
            loss=last["loss"][-1],
            validation=last["validation"][-1] if self.validation is not None else None,
            lr=last["lr"][-1],
        )
        stops = [callback(event) for callback in self.spec.callbacks]
        self.finished = self.finished or any(stop is True for stop in stops)

    # --- state --------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        return {
            "parameters": [p.detach() for p in self.program.parameters.values()],
            "buffers": list(self.program.buffers.values()),
            "optimizer": self.optimizer.state_dict()["state"],
            "lr": [g["lr"] for g in self.optimizer.param_groups],
            "orders": self.orders,
            "generators": [g.get_state() for g in self.generators],
            "random": self.random.get_state(),
            "epoch_loss": self.epoch_loss,
            "best": self.best.state(),
            **{name: getattr(self, name) for name in ("seeds", "epoch", "batch", "history", "finished")},
        }

    def restore(self) -> None:
        """Take up the state of a checkpoint, if there is one."""
        saved = self.saved
        if saved is None:
            return
        with torch.no_grad():
            for own, kept in zip(self.program.parameters.values(), saved["parameters"], strict=True):
                own.copy_(kept)
            for own, kept in zip(self.program.buffers.values(), saved["buffers"], strict=True):
                own.copy_(kept)
        groups = self.optimizer.state_dict()["param_groups"]
        for group, rate in zip(groups, saved["lr"], strict=True):
            group["lr"] = rate
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        for generator, kept in zip(self.generators, saved["generators"], strict=True):
            generator.set_state(kept)
        self.random.set_state(saved["random"])
        self.best.restore(saved["best"])
        for name in ("orders", "epoch_loss", "epoch", "batch", "history", "finished"):
            setattr(self, name, saved[name])

    def posterior(self) -> Posterior:
        names = [*self.program.parameters, *self.program.buffers]
        tensors = [*self.program.parameters.values(), *self.program.buffers.values()]
        tensors = [t.detach() for t in (self.best.tensors or tensors)]
        if self.program.members == 1:
            tensors = [t.unsqueeze(0) for t in tensors]
        distributed.broadcast_(*tensors)
        state = dict(zip(names, tensors, strict=True))
        parameters = {name: state[name].contiguous() for name in self.program.parameters}
        frozen = {k: v.expand(self.program.members, *v.shape) for k, v in _frozen(self.program).items()}
        buffers = {name: state[name].contiguous() for name in self.program.buffers}
        return Posterior(self.program.module, parameters | frozen, buffers, info={"history": self.history})


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


def _l1_rates(problem: Problem, program: Program) -> dict[str, float]:
    member = {k: v if program.members == 1 else v[0] for k, v in program.parameters.items()}
    found = {name: problem.rates(name, value) for name, value in member.items()}
    return {name: rates.l1 for name, rates in found.items() if rates is not None and rates.l1}


def _frozen(program: Program) -> dict[str, Tensor]:
    """Parameters that the user has frozen (`requires_grad=False`): part of the model, not trained."""
    return {k: v.detach() for k, v in program.module.named_parameters() if k not in program.parameters}


def _fingerprint(problem: Problem, spec: MAP, members: int) -> dict[str, Any]:
    """What tells one fit from another; a checkpoint of another is refused."""
    if spec.checkpoint is None:
        return {}
    return {
        "inference": repr(spec.replace(checkpoint=None, callbacks=(), augment=None)),
        "members": members,
        "likelihood": repr(problem.objective),
        "network": " ".join(repr(problem.module()).split()),
        "prior": repr(problem.prior),
        "data": data_fingerprint(problem.data),
    }
