"""What Markov chains driven by mini-batch gradients share: where they start, how far they step, what they keep.

    constant     εₜ = ε
    decreasing   εₜ = ε (1 + t/τ)^(−1/3)                          draws count in proportion to εₜ
    cyclical     εₜ = ε/2 · (1 + cos(π (t mod K)/K)),  K = steps / cycles

Chains move in coordinates φ, θ = centre + Wφ, in which the posterior around its start is about 1 wide everywhere, so
that the same step size suits any data. No draw is ever rejected: they are approximate, and the more so the larger ε is.
Whether chains agree is judged as that of exact ones: by R-hat of parameters, or of η at some training rows.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from ...core.callbacks import Callbacks
from ...core.checkpoint import Checkpoint
from ...core.errors import ConvergenceWarning, TrainingError
from ...core.random import spread
from ...core.spec import as_spec, require, transient
from ..coordinates import Coordinates, ValueAndGrad
from ..log_posterior import LogPosterior
from ..parameters import stacked
from ..posterior import Posterior
from ..precondition import SMALL, precondition, stiffness
from ..problem import Inference, Problem
from ..training.engine import Step, train
from ..training.mini_batches import MiniBatches, started, to_float32
from .convergence import agreement, said_of, untold

__all__ = ["Landscape"]

ROWS = 2_048
"""Rows that scales are measured on."""
LOOKS = 5
"""How often the curvature is measured anew during the warmup."""
WATCHED = 8
"""Chains at which it is."""
BATCHES = 64
"""Batches that the noise of the gradients is measured on."""


@dataclass(frozen=True)
class Landscape:
    """What is known of the log-density in coordinates φ before the chains start."""

    stiffness: float
    """Its largest curvature, as met among draws."""
    noise: Tensor
    """The variance of the mini-batch gradient of each coordinate (d,); 0 if a batch is all rows."""


class _StochasticGradient(Inference):
    """Base of the samplers: they say their usual step size and how a chain moves."""

    dtype = torch.float64
    integrates = True

    chains: int = 4
    draws: int = 100
    warmup: int = 500
    thin: int = 10
    step_size: float | None = None
    schedule: Literal["constant", "decreasing", "cyclical"] = "constant"
    cycles: int = 5
    batch_size: int | None = 256
    precondition: bool = True
    by: Inference | None = None
    checkpoint: Checkpoint | str | None = transient()
    callbacks: Callbacks = transient(())

    def validate(self) -> None:
        """Counts and sizes are positive; text becomes specs; every cycle has draws."""
        if self.by is not None:
            object.__setattr__(self, "by", as_spec(self.by, Inference, "by"))
        for name in ("chains", "draws", "thin", "cycles"):
            require(getattr(self, name) > 0, self, name, "a positive integer")
        require(self.warmup >= 0, self, "warmup", "0 or more steps")
        positive = self.step_size is None or 0 < self.step_size < math.inf
        require(positive, self, "step_size", "a positive number, or None to have it chosen")
        schedules = ("constant", "decreasing", "cyclical")
        require(self.schedule in schedules, self, "schedule", '"constant", "decreasing" or "cyclical"')
        whole = self.batch_size is None or self.batch_size > 0
        require(whole, self, "batch_size", "a positive integer, or None for all rows at once")
        if self.schedule == "cyclical":
            require(self.cycles <= self.draws, self, "cycles", f"at most draws={self.draws}")

    # --- what differs -------------------------------------------------------------------------------------------
    def usual_step(self, landscape: Landscape) -> float:
        """The step size that keeps the bias small."""
        raise NotImplementedError

    def move(
        self, phi: Tensor, momentum: Tensor, gradient: Tensor, step: float, landscape: Landscape, xi: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The next φ and momentum, from the gradient and standard normal ξ, all (chains, d)."""
        raise NotImplementedError

    # --- the chains ---------------------------------------------------------------------------------------------
    def fit(self, problem: Problem) -> Posterior:
        """The draws of all chains, one chain after another."""
        problem = to_float32(problem)
        chains = train(lambda seeds: _Chains(self, problem, seeds[0]), problem, [problem.seed], self)
        if not chains.draws:
            raise TrainingError(f"A callback ended {type(self).__name__} in its warmup, before there was a draw.")
        theta = torch.stack(chains.draws, 1).flatten(0, 1)  # (chains · draws, d)
        sizes = chains.sizes if self.schedule == "decreasing" else [1.0] * len(chains.sizes)
        weights = torch.tensor(sizes).to(theta)
        weights = (weights / weights.sum() / self.chains).repeat(self.chains)
        landscape, density = chains.ground.landscape, chains.density
        info = {
            "chains": self.chains,
            "step_size": chains.step,
            "stiffness": landscape.stiffness,
            "gradient_noise": float(landscape.noise.max()),
            "batches": chains.gradient.count,
            **agreement(density, torch.stack(chains.draws, 1)),
        }
        if disagreement := said_of(info):
            warnings.warn(
                f"{disagreement}. Try a longer warmup (now {self.warmup}), more steps between draws (thin, now "
                f"{self.thin}), standardised X and y, or a narrower prior.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if few := untold(info, self.draws):
            warnings.warn(f"{few}.", ConvergenceWarning, stacklevel=4)
        members = stacked(density.module, density.named(theta), len(theta))
        return Posterior(density.module, *members, weights, info)

    def _factor(self, t: int) -> float:
        """εₜ / ε."""
        total = self.warmup + self.draws * self.thin
        if self.schedule == "decreasing":
            return (1 + 20 * t / total) ** (-1 / 3)
        if self.schedule == "cyclical":
            return 0.5 * (1 + math.cos(math.pi * self._phase(t)))
        return 1.0

    def _phase(self, t: int) -> float:
        """Where in its cycle a step is, from 0 to 1; the warmup is a part of the first half of the first cycle."""
        length = (self.warmup + self.draws * self.thin) / self.cycles
        return (t % length) / length

    def _kept(self) -> set[int]:
        """The steps whose draws are kept: every `thin`-th, or those in the later half of each cycle, evenly."""
        total = self.warmup + self.draws * self.thin
        if self.schedule != "cyclical":
            return set(range(self.warmup + self.thin - 1, total, self.thin))
        length = total / self.cycles
        steps = set()
        for cycle in range(self.cycles):
            count = self.draws * (cycle + 1) // self.cycles - self.draws * cycle // self.cycles
            steps |= {math.floor(length * (cycle + 1 - 0.5 * k / count)) - 1 for k in range(count)}
        return steps

    def _check(self, value: Tensor, phi: Tensor, t: int, step: float) -> None:
        if not bool(value.isfinite().all() & phi.isfinite().all()):
            name = type(self).__name__
            raise TrainingError(
                f"{name} diverged by step {t + 1}, with step_size {step:g}. Try "
                f"{name}(step_size={step / 10:.1g}), a prior on the weights, or standardised inputs."
            )


class _Chains(Step):
    """All chains as one tensor: φ and its momentum (chains, d), and the θ that are kept."""

    def __init__(self, spec: _StochasticGradient, problem: Problem, seed: int) -> None:
        seeds = spread(seed, 4)
        self.spec, self.watched = spec, problem.verbose or bool(spec.callbacks)
        self.density = started(problem.with_(seed=seed), spec.by, spec.checkpoint)
        self.gradient = MiniBatches(self.density, spec.batch_size, seeds[0], independent=True)
        self.ground = _Ground(spec, self.density, self.gradient, seeds)
        self.random = torch.Generator().manual_seed(seeds[3])
        self.length, self.kept = spec.warmup + spec.draws * spec.thin, spec._kept()
        moments = [spec.warmup * (look + 1) // (LOOKS + 2) for look in range(LOOKS)]
        self.looks = {t for t in moments if t} if spec.step_size is None else set()
        self.step = self._chosen()
        self.phi = self._normal() if spec.precondition else self.step**0.5 * self._normal()
        self.momentum = self._normal()
        self.draws: list[Tensor] = []
        self.sizes: list[float] = []
        self.value = self.phi.new_zeros(spec.chains)

    def advance(self, at: int) -> None:
        ground = self.ground
        if at in self.looks:
            ground.look(ground.coordinates.point(self.phi[:WATCHED]))
            self.step = self._chosen()
        size = self.step * self.spec._factor(at)
        self.value, gradient = self.gradient(ground.coordinates.point(self.phi))
        pull, xi = ground.bounded(gradient), self._normal()
        self.phi, self.momentum = self.spec.move(self.phi, self.momentum, pull, size, ground.landscape, xi)
        if at in self.kept:
            self.spec._check(self.value, self.phi, at, self.step)
            self.draws.append(ground.coordinates.point(self.phi))
            self.sizes.append(size)

    def report(self, at: int) -> dict[str, float]:
        log_prob = float(self.value.mean()) if self.watched else 0.0
        return {"log_prob": log_prob, "step": self.step * self.spec._factor(at - 1)}

    def state(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("phi", "momentum", "step", "draws", "sizes")},
            "stiffness": self.ground.landscape.stiffness,
            "gradient": self.gradient.state(),
            "random": self.random.get_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name in ("phi", "momentum", "step", "draws", "sizes"):
            setattr(self, name, state[name])
        self.ground.landscape = replace(self.ground.landscape, stiffness=state["stiffness"])
        self.gradient.restore(state["gradient"])
        self.random.set_state(state["random"])

    def _chosen(self) -> float:
        chosen = self.spec.step_size
        return self.spec.usual_step(self.ground.landscape) if chosen is None else chosen

    def _normal(self) -> Tensor:
        centre = self.ground.coordinates.centre
        shape = (self.spec.chains, len(centre))
        return torch.randn(shape, generator=self.random, dtype=centre.dtype).to(centre.device)


class _Ground:
    """The coordinates of a run, and the curvature and gradient noise in them."""

    def __init__(
        self, spec: _StochasticGradient, density: LogPosterior, gradient: MiniBatches, seeds: list[int]
    ) -> None:
        self.seed = seeds[2]
        rows = torch.randperm(gradient.rows, generator=torch.Generator().manual_seed(seeds[1]))[:ROWS]
        self.value_and_grad: ValueAndGrad = (
            density.value_and_grad if gradient.rows <= ROWS else partial(gradient.on, rows)
        )
        centre = density.start()
        self.coordinates = Coordinates(centre)
        if spec.precondition:
            self.coordinates = precondition(self.value_and_grad, centre, self.seed, dense=len(centre) <= SMALL)
        noise = torch.zeros_like(centre)
        if not gradient.full:
            gradients = torch.cat([gradient(centre.unsqueeze(0))[1] for _ in range(BATCHES)])
            noise = self.coordinates.pull(gradients).var(0)
        self.landscape = Landscape(0.0, noise)
        self.look(centre.unsqueeze(0))
        if spec.precondition:  # a little way off, networks bend more sharply than at their mode
            random = torch.Generator().manual_seed(self.seed)
            phi = torch.randn(WATCHED, len(centre), generator=random, dtype=centre.dtype).to(centre.device)
            self.look(self.coordinates.point(0.5 * phi))

    def look(self, points: Tensor) -> None:
        """Take note of the curvature at some θ, if it is larger on average than what was met before."""
        measured = float(stiffness(self.value_and_grad, self.coordinates, points, self.seed).mean())
        if self.landscape.stiffness < measured < math.inf:
            self.landscape = replace(self.landscape, stiffness=measured)

    def bounded(self, gradient: Tensor) -> Tensor:
        """The gradient in φ; far out, where log p is steeper than among draws, no longer than ten times what is usual.

        Otherwise a single step could throw a chain farther still.
        """
        usual = math.sqrt(len(gradient[0]) * (1 + self.landscape.stiffness) + float(self.landscape.noise.sum()))
        pulled = self.coordinates.pull(gradient)
        return pulled * (10 * usual / pulled.norm(dim=1, keepdim=True)).clamp_max(1)
