"""The step of MAP and Ensemble: descend the loss of a batch, for one member or for many at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import DataError, TrainingError
from ...core.random import normal_like, spread
from ...optim import clip_norm_
from ..dataset import Batch, Dataset
from ..posterior import Posterior
from ..problem import Problem
from .early_stopping import Best
from .perturb import as_held_out
from .run import Run
from .truncation import truncated

if TYPE_CHECKING:
    from .map import MAP

__all__ = ["Descent"]


class Descent(Run):
    """One run on one loss, with held-out rows and early stopping."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int]) -> None:
        data, held_out = _split(problem, spec, seeds[0])
        self.validation = None if held_out is None else as_held_out(spec.augment, held_out, spread(seeds[0], 3)[2])
        super().__init__(problem, spec, seeds, data)
        self.proximal = self.program.sparse and not spec.optimizer.needs_closure
        self.epoch_loss = 0.0  # mean over the batches so far, and over members
        self.best = Best(len(seeds), spec.patience)

    # --- one step -----------------------------------------------------------------------------------------------
    def advance(self, at: int) -> None:
        self._set_rates(at)
        batch, fraction = self._take()
        if self.spec.optimizer.needs_closure:
            before = self.program.flat.clone()
            loss = self.optimizers[0].step(lambda: self._evaluate(batch, fraction))
            if not bool(self.program.flat.isfinite().all()):  # a curvature that rounding made: begin without one
                self.program.flat.copy_(before)
                self.optimizers = [self._built(self.spec.optimizer, self.program.flat)]
        else:
            loss = self._evaluate(batch, fraction)
            self.optimizers[0].step()
        if self.opponent is not None:
            self.opponent.learn()
        if self.proximal:
            self._shrink()
        value = loss / self.program.members
        if not math.isfinite(value):
            raise TrainingError(
                f"The loss is {value:g} at step {at + 1} (epoch {at // self.every + 1}) with learning rate "
                f"{self.rate:g}. Try a smaller learning rate, clip_norm=1.0, or standardised inputs."
            )
        self.epoch_loss += value / self.every
        if self.average is not None:
            self.average.take(self.program.flat, at + 1)
        if self.spec.tol is not None and self.every == 1:
            self.finished = self._stuck(value) or self._gradient_norm() <= self.spec.tol
        self.finished = self.finished or at + 1 == self.length

    def _gradient_norm(self) -> float:
        gradient = self.program.flat.grad
        assert gradient is not None
        return float(gradient.double().norm())

    def _evaluate(self, batch: Batch, fraction: float) -> float:
        """The batch's estimate of (−Σ w log p(y | η) − log p(θ)) / Σ w over all processes, and its gradient."""
        program, noise = self.program, self.spec.noise
        if program.flat.grad is not program.gradient:  # an optimiser with a line search may have put another one there
            program.flat.grad = program.gradient
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
            loss += torch.dot(rate, program.flat.abs()).item()
        if self.world > 1:  # what a line search decides by must be the same in every process
            total = torch.tensor(loss, dtype=torch.float64, device=program.flat.device)
            distributed.sum_(program.gradient, total)
            loss = total.item()
        if self.spec.clip_norm is not None:
            several = [value.grad for value in program.parameters.values()] if program.stacked else [program.gradient]
            clip_norm_(several, self.spec.clip_norm, stacked=program.stacked)
        if noise is not None and noise.gradients:
            gap = normal_like(program.gradient)
            distributed.broadcast_(gap)  # every process takes the same step
            program.gradient.add_(gap, alpha=noise.gradients)
        return loss

    def _stuck(self, loss: float) -> bool:
        """Whether a line search found no step, or its loss is the last one to the bit: it never will find another."""
        if not self.spec.optimizer.needs_closure:
            return False
        return getattr(self.optimizers[0], "step_size", None) == 0 or self.history.get("loss", [])[-1:] == [loss]

    @torch.no_grad()
    def _shrink(self) -> None:
        """The proximal step of −λ|θ|: soft-thresholding by λ times the step that each parameter has just taken."""
        flat, reach = self.program.flat, self.spec.optimizer.reach(self.optimizers[0], self.program.flat)
        assert self.program.l1 is not None
        flat.copy_(flat.sign() * (flat.abs() - self.program.l1 / self.total_weight * reach).clamp_min(0))

    # --- the end of an epoch ------------------------------------------------------------------------------------
    def report(self, at: int) -> dict[str, float]:
        numbers = {"loss": self.epoch_loss * self._over(at), "lr": self.rate}
        self.epoch_loss = 0.0
        if self.validation is not None:
            with self._averaged():
                scores = self.program.score(self.validation)
                distributed.broadcast_(scores)
                self.finished = self.best.update(scores, self._tensors()) or self.finished
            numbers["validation"] = float(scores.mean())
        return self._record(numbers)

    # --- state --------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        return super().state() | {"epoch_loss": self.epoch_loss, "best": self.best.state()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.best.restore(state["best"])
        self.epoch_loss = state["epoch_loss"]

    def posterior(self, chosen: list[Tensor] | None = None) -> Posterior:
        """The members, as they are now or as they validated best."""
        return super().posterior(chosen or self.best.tensors)


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
