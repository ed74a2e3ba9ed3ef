"""Noise schedules: how much of a row is left at time t, and how much noise has come.

    xₜ = αₜ x₀ + σₜ ε,   t ∈ [0, 1],      log SNR: λ(t) = log αₜ² / σₜ²  falls in t

Variance-preserving ones have αₜ² + σₜ² = 1; a variance-exploding one has αₜ = 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from ...core.spec import Spec, is_integer, require

__all__ = ["Cosine", "Exploding", "Learned", "Linear", "NoiseSchedule", "Path"]


LEAST = 1e-4
"""Noise that a linear schedule begins with: that of its first step of a thousand."""


class Path(nn.Module):
    """λ(t) and what follows from it; a schedule that learns has parameters here."""

    exploding: bool = False

    def log_snr(self, t: Tensor) -> Tensor:
        """λ(t) of times (n,)."""
        raise NotImplementedError

    def level(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """αₜ and σₜ."""
        log_snr = self.log_snr(t)
        if self.exploding:
            return torch.ones_like(t), torch.exp(-0.5 * log_snr)
        return torch.exp(0.5 * logsigmoid(log_snr)), torch.exp(0.5 * logsigmoid(-log_snr))

    def alpha(self, t: Tensor) -> Tensor:
        """αₜ."""
        return self.level(t)[0]

    def sigma(self, t: Tensor) -> Tensor:
        """σₜ."""
        return self.level(t)[1]


class NoiseSchedule(Spec, axis="noise_schedule"):
    """A rule for λ(t)."""

    def path(self) -> Path:
        """The module that computes it."""
        raise NotImplementedError(f"{type(self).__name__} must give its path")


class _Given(Path):
    def __init__(self, schedule: NoiseSchedule) -> None:
        super().__init__()
        self.schedule = schedule
        self.exploding = isinstance(schedule, Exploding)

    def log_snr(self, t: Tensor) -> Tensor:
        return self.schedule.at(t)  # type: ignore[attr-defined]


class Linear(NoiseSchedule):
    """The rate of noise β grows linearly from `low` to `high`: log ᾱ(t) = −low·t − ½(high − low)·t².

    >>> path = Linear().path()
    >>> bool(path.alpha(torch.tensor([0.0])) > 0.999), bool(path.alpha(torch.tensor([1.0])) < 0.01)
    (True, True)
    """

    low: float = 0.1
    high: float = 20.0

    def validate(self) -> None:
        require(0 < self.low <= self.high, self, "low", "above 0 and at most high")

    def at(self, t: Tensor) -> Tensor:
        """λ(t)."""
        integral = self.low * t + 0.5 * (self.high - self.low) * t.square() + LEAST
        return -torch.log(torch.expm1(integral))

    def path(self) -> Path:
        return _Given(self)


class Cosine(NoiseSchedule):
    """αₜ = cos(πt/2), shifted by a little at both ends so that λ stays finite: noise comes evenly.

    >>> Cosine().path().log_snr(torch.tensor([0.5])).abs() < 0.05
    tensor([True])
    """

    offset: float = 0.008

    def validate(self) -> None:
        require(0 < self.offset < 0.5, self, "offset", "between 0 and 0.5")

    def at(self, t: Tensor) -> Tensor:
        """λ(t) = −2 log tan(π/2 · (offset + t(1 − 2·offset)))."""
        return -2 * torch.log(torch.tan(0.5 * math.pi * (self.offset + t * (1 - 2 * self.offset))))

    def path(self) -> Path:
        return _Given(self)


class Exploding(NoiseSchedule):
    """Variance exploding: xₜ = x₀ + σₜ ε with σ growing geometrically from `low` to `high` standard deviations.

    >>> path = Exploding(0.01, 10.0).path()
    >>> path.sigma(torch.tensor([1.0])), path.alpha(torch.tensor([1.0]))
    (tensor([10.]), tensor([1.]))
    """

    low: float = 0.01
    high: float = 50.0

    def validate(self) -> None:
        require(0 < self.low < self.high, self, "low", "above 0 and below high")

    def at(self, t: Tensor) -> Tensor:
        """λ(t) = −2 log σₜ."""
        return -2 * (math.log(self.low) + t * math.log(self.high / self.low))

    def path(self) -> Path:
        return _Given(self)


class Learned(NoiseSchedule):
    """λ(t) is learned with the network: a falling line through `knots` points whose ends and bends are parameters.

    The bound depends on the ends of λ and, by its variance alone, on how λ gets there; `weighting="bound"` trains it.

    >>> path = Learned().path()
    >>> bool((path.log_snr(torch.linspace(0, 1, 9)).diff() < 0).all())
    True
    """

    knots: int = 16

    def validate(self) -> None:
        require(is_integer(self.knots, 2), self, "knots", "an integer of 2 or more")

    def path(self) -> Path:
        return LearnedPath(self.knots)


class LearnedPath(Path):
    """λ(t) = top − drop·Φ(t) with Φ rising piecewise linearly from 0 to 1."""

    def __init__(self, knots: int) -> None:
        super().__init__()
        self.ends = nn.Parameter(torch.tensor([9.0, 18.0]))
        self.bends = nn.Parameter(torch.zeros(knots))

    def log_snr(self, t: Tensor) -> Tensor:
        rises = torch.softmax(self.bends, 0)
        heights = torch.cat([rises.new_zeros(1), rises.cumsum(0)])
        place = (t.clamp(0, 1) * len(rises)).clamp(max=len(rises) - 1e-4)
        index = place.floor().long()
        height = heights[index] + (place - index) * rises[index]
        return self.ends[0] - softplus(self.ends[1]) * height
