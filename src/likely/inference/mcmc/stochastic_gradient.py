"""What Markov chains driven by mini-batch gradients share: where they start, how far they step, what they keep.

    constant     εₜ = ε
    decreasing   εₜ = ε (1 + t/τ)^(−1/3)                          draws count in proportion to εₜ
    cyclical     εₜ = ε/2 · (1 + cos(π (t mod K)/K)),  K = steps / cycles

Chains move in coordinates φ, θ = centre + Wφ, in which the posterior around its start is about 1 wide everywhere, so
that the same step size suits any data. No draw is ever rejected: they are approximate, and the more so the larger ε is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ...core.errors import TrainingError
from ...core.progress import progress
from ...core.random import spread
from ...core.spec import as_spec, require
from ..coordinates import Coordinates, ValueAndGrad
from ..log_posterior import LogPosterior
from ..parameters import stacked
from ..posterior import Posterior
from ..precondition import SMALL, precondition, stiffness
from ..problem import Inference, Problem
from ..training.mini_batches import MiniBatches, lightened, started

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

    def validate(self) -> None:
        """Numbers are positive; text becomes specs; every cycle has draws."""
        if self.by is not None:
            object.__setattr__(self, "by", as_spec(self.by, Inference, "by"))
        for name in ("chains", "draws", "thin", "cycles"):
            require(getattr(self, name) > 0, self, name, "a positive whole number")
        require(self.warmup >= 0, self, "warmup", "0 or more steps")
        positive = self.step_size is None or 0 < self.step_size < math.inf
        require(positive, self, "step_size", "a positive number, or None to have it chosen")
        schedules = ("constant", "decreasing", "cyclical")
        require(self.schedule in schedules, self, "schedule", '"constant", "decreasing" or "cyclical"')
        whole = self.batch_size is None or self.batch_size > 0
        require(whole, self, "batch_size", "a positive whole number, or None for all rows at once")
        if self.schedule == "cyclical":
            require(self.cycles <= self.draws, self, "cycles", f"at most draws={self.draws}")

    # --- what differs -------------------------------------------------------------------------------------------
    def usual_step(self, landscape: Landscape) -> float:
        """The step size that keeps the bias small."""
        raise NotImplementedError

    def move(
        self, phi: Tensor, momentum: Tensor, slope: Tensor, step: float, landscape: Landscape, xi: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The next φ and momentum, from the gradient and standard normal ξ, all (chains, d)."""
        raise NotImplementedError

    # --- the chains ---------------------------------------------------------------------------------------------
    def fit(self, problem: Problem) -> Posterior:
        """The draws of all chains, one chain after another."""
        problem = lightened(problem)
        density = started(problem, self.by)
        seeds = spread(problem.seed, 4)
        gradient = MiniBatches(density, self.batch_size, seeds[0], independent=True)
        ground = _Ground(self, density, gradient, seeds)
        draws, sizes, step = self._run(gradient, ground, seeds[3])
        theta = torch.stack(draws, 1).flatten(0, 1)  # (chains · draws, d)
        weights = torch.tensor(sizes if self.schedule == "decreasing" else [1.0] * len(sizes)).to(theta)
        weights = (weights / weights.sum() / self.chains).repeat(self.chains)
        info = {
            "chains": self.chains,
            "step_size": step,
            "stiffness": ground.landscape.stiffness,
            "gradient_noise": float(ground.landscape.noise.max()),
            "batches": gradient.count,
        }
        members = stacked(density.module, density.named(theta), len(theta))
        return Posterior(density.module, *members, weights, info)

    def _run(self, gradient: MiniBatches, ground: _Ground, seed: int) -> tuple[list[Tensor], list[float], float]:
        """The kept θ, each (chains, d), their step sizes, and the step size that the schedule multiplies."""
        random = torch.Generator().manual_seed(seed)
        coordinates, problem = ground.coordinates, gradient.density.problem
        centre = coordinates.centre
        shape = (self.chains, len(centre))

        def normal() -> Tensor:
            return torch.randn(shape, generator=random, dtype=centre.dtype).to(centre.device)

        def chosen() -> float:
            return self.usual_step(ground.landscape) if self.step_size is None else self.step_size

        step = chosen()
        phi = normal() if self.precondition else step**0.5 * normal()
        momentum = normal()
        total, kept = self.warmup + self.draws * self.thin, self._kept()
        looks = {self.warmup * (look + 1) // (LOOKS + 2) for look in range(LOOKS)} if self.step_size is None else set()
        draws, sizes = [], []
        with progress(problem.title, total, show=problem.verbose) as report:
            for t in range(total):
                if t in looks and t > 0:
                    ground.look(coordinates.point(phi[:WATCHED]))
                    step = chosen()
                size = step * self._factor(t)
                value, slope = gradient(coordinates.point(phi))
                phi, momentum = self.move(phi, momentum, ground.bounded(slope), size, ground.landscape, normal())
                if t in kept:
                    self._check(value, phi, t, step)
                    draws.append(coordinates.point(phi))
                    sizes.append(size)
                report(t + 1, log_prob=float(value.mean()) if problem.verbose else 0.0, step=size)
        return draws, sizes, step

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
        found = set()
        for cycle in range(self.cycles):
            count = self.draws * (cycle + 1) // self.cycles - self.draws * cycle // self.cycles
            found |= {math.floor(length * (cycle + 1 - 0.5 * k / count)) - 1 for k in range(count)}
        return found

    def _check(self, value: Tensor, phi: Tensor, t: int, step: float) -> None:
        if not bool(value.isfinite().all() & phi.isfinite().all()):
            name = type(self).__name__
            raise TrainingError(
                f"{name} left the range of numbers by step {t + 1}, with step_size {step:g}. Try "
                f"{name}(step_size={step / 10:.1g}), a prior on the weights, or standardised inputs."
            )


class _Ground:
    """The coordinates of a run, and the curvature and gradient noise in them."""

    def __init__(
        self, spec: _StochasticGradient, density: LogPosterior, gradient: MiniBatches, seeds: list[int]
    ) -> None:
        self.seed = seeds[2]
        rows = torch.randperm(gradient.rows, generator=torch.Generator().manual_seed(seeds[1]))[:ROWS]
        self.slope: ValueAndGrad = density.value_and_grad if gradient.rows <= ROWS else partial(gradient.on, rows)
        centre = density.start()
        self.coordinates = Coordinates(centre)
        if spec.precondition:
            self.coordinates = precondition(self.slope, centre, self.seed, dense=len(centre) <= SMALL)
        noise = torch.zeros_like(centre)
        if not gradient.full:
            found = torch.cat([gradient(centre.unsqueeze(0))[1] for _ in range(BATCHES)])
            noise = self.coordinates.pull(found).var(0)
        self.landscape = Landscape(0.0, noise)
        self.look(centre.unsqueeze(0))
        if spec.precondition:  # a little way off, networks bend more sharply than at their mode
            random = torch.Generator().manual_seed(self.seed)
            phi = torch.randn(WATCHED, len(centre), generator=random, dtype=centre.dtype).to(centre.device)
            self.look(self.coordinates.point(0.5 * phi))

    def look(self, points: Tensor) -> None:
        """Take note of the curvature at some θ, if it is larger on average than what was met before."""
        found = float(stiffness(self.slope, self.coordinates, points, self.seed).mean())
        if self.landscape.stiffness < found < math.inf:
            self.landscape = replace(self.landscape, stiffness=found)

    def bounded(self, slope: Tensor) -> Tensor:
        """The gradient in φ; far out, where log p is steeper than among draws, no longer than ten times what is usual.

        Otherwise a single step could throw a chain farther still.
        """
        usual = math.sqrt(len(slope[0]) * (1 + self.landscape.stiffness) + float(self.landscape.noise.sum()))
        pulled = self.coordinates.pull(slope)
        return pulled * (10 * usual / pulled.norm(dim=1, keepdim=True)).clamp_max(1)
