"""Samplers: from noise to rows, given what the network says a noisy row was before the noise.

DDPM    xₛ ~ q(xₛ | xₜ, x̂₀(xₜ))                                          a Markov chain, one noise a step
DDIM    xₛ = αₛ x̂₀ + √(σₛ² − ς²) ε̂ + ς ε,   ς = η · DDPM's                η = 0: no noise at all
Heun    dy/d log s = y − x̂₀,   y = x/α,  s = σ/α                         the probability-flow ODE, second order
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import ClassVar

from torch import Tensor

from ...core.random import normal_like
from ...core.spec import Spec, is_integer, require
from .gaussian_steps import level_at, noise_from, posterior_step
from .schedules import Path

__all__ = ["DDIM", "DDPM", "Denoiser", "Heun", "Sampler"]

Denoiser = Callable[[Tensor, Tensor], Tensor]
"""x̂₀ from noisy rows and their times (n,)."""


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

    def walk(self, denoise: Denoiser, path: Path, x: Tensor, steps: int) -> Iterator[Tensor]:
        """All states from noise x at time 1 to new rows: the last step takes x̂₀ itself."""
        times = self.times(steps)
        yield x
        for now, next_ in pairwise(times[:-1]):
            x = self.step(denoise, path, x, now, next_)
            yield x
        yield denoise(x, x.new_full((len(x),), times[-2]))

    def run(self, denoise: Denoiser, path: Path, x: Tensor, steps: int) -> Tensor:
        """New rows from noise x at time 1."""
        for state in self.walk(denoise, path, x, steps):
            x = state
        return x

    def step(self, denoise: Denoiser, path: Path, x: Tensor, now: float, next_: float) -> Tensor:
        """One step from time `now` to the earlier `next_`."""
        raise NotImplementedError(f"{type(self).__name__} must step")


class DDPM(Sampler):
    """Ancestral sampling: a draw of q(xₛ | xₜ, x̂₀) at every step.

    >>> DDPM(4).times(1000)
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    def step(self, denoise: Denoiser, path: Path, x: Tensor, now: float, next_: float) -> Tensor:
        t, s = (x.new_full((len(x),), time) for time in (now, next_))
        mean, deviation = posterior_step(x, denoise(x, t), level_at(path, t, x.ndim), level_at(path, s, x.ndim))
        return mean + deviation * normal_like(x)


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

    def step(self, denoise: Denoiser, path: Path, x: Tensor, now: float, next_: float) -> Tensor:
        t, s = (x.new_full((len(x),), time) for time in (now, next_))
        before, after = level_at(path, t, x.ndim), level_at(path, s, x.ndim)
        data = denoise(x, t)
        noise = noise_from(data, x, before)
        if not self.eta:
            return after.alpha * data + after.sigma * noise
        deviation = self.eta * posterior_step(x, data, before, after)[1]
        kept = (after.sigma.square() - deviation.square()).clamp_min(0).sqrt()
        return after.alpha * data + kept * noise + deviation * normal_like(x)


class Heun(Sampler):
    """The probability-flow ODE by Heun's method, its linear part solved exactly: two calls of the network a step.

    >>> Heun(20)
    Heun(n=20)
    """

    n: int | None = 30
    bend: ClassVar[float] = 2.0

    def step(self, denoise: Denoiser, path: Path, x: Tensor, now: float, next_: float) -> Tensor:
        t, s = (x.new_full((len(x),), time) for time in (now, next_))
        before, after = level_at(path, t, x.ndim), level_at(path, s, x.ndim)
        shrink = after.sigma / before.sigma
        data = denoise(x, t)
        guess = shrink * x + (after.alpha - before.alpha * shrink) * data
        data = 0.5 * (data + denoise(guess, s))
        return shrink * x + (after.alpha - before.alpha * shrink) * data
