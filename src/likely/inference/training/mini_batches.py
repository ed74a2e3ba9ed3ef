"""Unbiased estimates of log p(θ | data) and its gradient from mini-batches, for many θ at once.

    ∇̂ log p(θ | data) = N/b Σ_{i in batch} wᵢ ∇log p(yᵢ | η(xᵢ; θ)) + ∇log p(θ)

Every epoch is a new order of the rows, cut into batches of equal size (give or take one row); or, for samplers whose
theory needs noise without memory, every batch is drawn anew. All θ see the same batch. Of several processes each takes
its part of the batch's rows, and the sums are the same in all of them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ...core import distributed
from ...core.checkpoint import Checkpoint, beside
from ...optim import Adam, Cosine
from ..automatic import automatic
from ..log_posterior import LogPosterior
from ..problem import Inference, Problem
from .map import MAP

__all__ = ["MiniBatches", "started", "to_float32"]

STEPS = 2_000
"""Training steps that bring a network near a mode, however few its rows are."""
MANY = 50
"""Batches in an epoch from which on one is drawn without a look at all rows."""
LARGE = 20_000
"""Parameters from which on float32 is worth its rounding."""


class MiniBatches:
    """A call gives values (chains,) and gradients (chains, d) on the next batch; without a size, on all rows."""

    def __init__(self, density: LogPosterior, batch_size: int | None, seed: int, *, independent: bool = False) -> None:
        self.density, self.rows = density, len(density.problem.data)
        self.independent = independent
        self.count = 1 if batch_size is None else math.ceil(self.rows / batch_size)
        self._random = torch.Generator().manual_seed(seed)
        self._waiting: list[Tensor] = []

    @property
    def full(self) -> bool:
        """Whether a batch is all there is, so that nothing is estimated."""
        return self.count == 1

    def __call__(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        if self.full:
            return self.density.value_and_grad(theta)
        if not self._waiting:
            self._waiting = self._drawn()
        return self.on(self._waiting.pop(), theta)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"random": self._random.get_state(), "waiting": self._waiting}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self._random.set_state(state["random"])
        self._waiting = state["waiting"]

    def _drawn(self) -> list[Tensor]:
        if self.independent and self.count > MANY:  # then hardly a row comes twice
            return [torch.randint(self.rows, (math.ceil(self.rows / self.count),), generator=self._random)]
        epoch = torch.randperm(self.rows, generator=self._random).tensor_split(self.count)
        return [epoch[0]] if self.independent else list(epoch)

    def on(self, rows: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
        """The estimate from these rows."""
        density, scale = self.density, self.rows / len(rows)
        data = density.problem.data
        own = rows[distributed.shard(len(rows))].to(data.x.device)
        with torch.enable_grad():
            point = theta.detach().requires_grad_()
            value, gradient = theta.new_zeros(len(theta)), torch.zeros_like(theta)
            if len(own):
                part = scale * density.batch_log_likelihood(point, data.batch(own))
                value, gradient = part.detach(), torch.autograd.grad(part.sum(), point)[0]
            distributed.sum_(value, gradient)
            prior = density.log_prior(point)
            if prior.requires_grad:
                gradient = gradient + torch.autograd.grad(prior.sum(), point)[0]
        return value + prior.detach(), gradient


def started(problem: Problem, start: Inference | None, checkpoint: Checkpoint | str | None = None) -> LogPosterior:
    """The density of a problem whose module has the parameters that another inference found.

    None is the closed form or Newton's method for linear models; for networks, training with enough steps to arrive.
    Where the fit has a `checkpoint`, training has one of its own beside it.
    """
    chosen = start or automatic(problem, mode=True)
    if start is None and isinstance(chosen, MAP):
        batches = math.ceil(len(problem.data) / (chosen.batch_size or len(problem.data)))
        epochs = max(chosen.epochs, math.ceil(STEPS / batches))
        chosen = chosen if chosen.optimizer.needs_closure else MAP(Adam(0.01), epochs=epochs, schedule=Cosine())
    if checkpoint is not None and isinstance(chosen, MAP) and chosen.checkpoint is None:
        chosen = chosen.replace(checkpoint=beside(checkpoint, "start"))
    posterior, trainable = chosen.fit(problem), problem.description.trainable

    def build(seed: int) -> torch.nn.Module:
        module = posterior.module_of(0)
        for name, value in module.named_parameters():
            value.requires_grad_(name in trainable)
        return module

    return LogPosterior(problem.with_(build=build))


def to_float32(problem: Problem) -> Problem:
    """The problem in float32 if its parameters are many."""
    if problem.description.size <= LARGE:
        return problem
    return problem.with_(data=problem.data.to(torch.float32))
