"""Samplers: from noise to rows, given what the network says a noisy row was before the noise.

    xₛ = a xₜ + b x̂₀(xₜ) + c ε

DDPM    q(xₛ | xₜ, x̂₀): a Markov chain, one noise a step
DDIM    xₛ = αₛ x̂₀ + √(σₛ² − c²) ε̂ + c ε,   ε̂ = (xₜ − αₜ x̂₀)/σₜ,   c = η · DDPM's       η = 0: no noise at all
Heun    dy/d log s = y − x̂₀,   y = x/α,  s = σ/α        the probability-flow ODE, second order: x̂₀ at both ends
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from ...core.random import normal_like
from ...core.spec import Spec, is_integer, require
from .gaussian_steps import Level, level_at, posterior_weights
from .schedules import Path

__all__ = ["DDIM", "DDPM", "Denoiser", "Heun", "Moment", "Sampler", "Step"]

Denoiser = Callable[[Tensor, Tensor, Level], Tensor]
"""x̂₀ from noisy rows, the time of them all (1,) and the level of noise there."""


class Moment(NamedTuple):
    """A time (1,) and its level, for rows of some shape."""

    t: Tensor
    level: Level


class Step(NamedTuple):
    """From the moment `now` to the earlier `next_` by xₛ = of_x xₜ + of_data x̂₀ + of_noise ε."""

    now: Moment
    next_: Moment
    of_x: float
    of_data: float
    of_noise: float


class Sampler(Spec, axis="diffusion_sampler"):
    """How new rows are drawn; `n` steps, or as many as the model has."""

    n: int | None = None
    bend: ClassVar[float] = 1.0
    """Times are the powers of evenly spaced ones: above 1, few large steps make much noise of little."""

    def validate(self) -> None:
        require(self.n is None or is_integer(self.n), self, "n", "an integer above 0, or None")

    def times(self, steps: int) -> list[float]:
        """From 1 down to 0."""
        count = self.n or steps
        return [(1 - i / count) ** self.bend for i in range(count + 1)]

    def weights(self, now: Level, next_: Level) -> tuple[Tensor, Tensor, Tensor]:
        """a, b and c of steps between levels."""
        raise NotImplementedError(f"{type(self).__name__} must weigh")

    def planned(self, path: Path, times: list[float], like: Tensor) -> list[Step]:
        """The steps between these times: levels and weights are found for all of them at once, before the first."""
        exact = torch.tensor(times, dtype=torch.float64, device=like.device)
        level = level_at(path, exact, 1)
        before, after = (Level(level.alpha[part], level.sigma[part]) for part in (slice(-1), slice(1, None)))
        weights = zip(*(part.tolist() for part in self.weights(before, after)), strict=True)
        wide = (-1, *(1,) * (like.ndim - 1))
        alphas, sigmas = (part.to(like).view(wide).split(1) for part in level)
        moments = [Moment(*own) for own in zip(exact.to(like).split(1), map(Level, alphas, sigmas), strict=True)]
        return [Step(*ends, *own) for ends, own in zip(pairwise(moments), weights, strict=True)]

    def walk(self, denoise: Denoiser, path: Path, x: Tensor, steps: int) -> Iterator[Tensor]:
        """All states from noise x at time 1 to new rows: the last step takes x̂₀ itself."""
        yield x
        *before, last = self.planned(path, self.times(steps), x)
        for step in before:
            x = self.taken(denoise, x, step)
            yield x
        yield denoise(x, *last.now)

    def run(self, denoise: Denoiser, path: Path, x: Tensor, steps: int) -> Tensor:
        """New rows from noise x at time 1."""
        for state in self.walk(denoise, path, x, steps):
            x = state
        return x

    def taken(self, denoise: Denoiser, x: Tensor, step: Step) -> Tensor:
        """The state after a step."""
        new = (step.of_x * x).add_(denoise(x, *step.now), alpha=step.of_data)
        return new.add_(normal_like(x), alpha=step.of_noise) if step.of_noise else new


class DDPM(Sampler):
    """Ancestral sampling: a draw of q(xₛ | xₜ, x̂₀) at every step.

    >>> DDPM(4).times(1000)
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    def weights(self, now: Level, next_: Level) -> tuple[Tensor, Tensor, Tensor]:
        return posterior_weights(now, next_)


class DDIM(Sampler):
    """Steps along the same marginals with less noise: η = 1 is DDPM, η = 0 is deterministic and needs few steps.

    >>> DDIM(20)
    DDIM(n=20)
    """

    n: int | None = 50
    eta: float = 0.0
    bend: ClassVar[float] = 2.0

    def validate(self) -> None:
        super().validate()
        require(isinstance(self.eta, int | float) and 0 <= self.eta <= 1, self, "eta", "from 0 to 1")

    def weights(self, now: Level, next_: Level) -> tuple[Tensor, Tensor, Tensor]:
        deviation = self.eta * posterior_weights(now, next_)[2]
        kept = (next_.sigma.square() - deviation.square()).clamp_min(0).sqrt() / now.sigma
        return kept, next_.alpha - kept * now.alpha, deviation


class Heun(Sampler):
    """The probability-flow ODE by Heun's method, its linear part solved exactly: two calls of the network a step.

    >>> Heun(20)
    Heun(n=20)
    """

    n: int | None = 30
    bend: ClassVar[float] = 2.0

    def weights(self, now: Level, next_: Level) -> tuple[Tensor, Tensor, Tensor]:
        shrink = next_.sigma / now.sigma
        return shrink, next_.alpha - now.alpha * shrink, torch.zeros_like(shrink)

    def taken(self, denoise: Denoiser, x: Tensor, step: Step) -> Tensor:
        part, data = step.of_x * x, denoise(x, *step.now)
        again = denoise(part.add(data, alpha=step.of_data), *step.next_)
        return part.add_(data.add(again), alpha=0.5 * step.of_data)
