"""Gamma: positive numbers whose spread grows with their mean μ; variance μ²/α.

log p(y | x) = α log(α/μ) − log Γ(α) + (α − 1) log y − α y/μ

μ = exp(η₁),   concentration α = fixed | exp(learned) | exp(η₂(x));   α = 1 is the Exponential
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from . import weighted
from .base import Likelihood, Target
from .choices import (
    Choice,
    arrange,
    free,
    learned,
    logarithms,
    require_choice,
    scores,
    within,
)
from .special import bounded_exp, bounded_exp_grad, gamma_remainder, gamma_remainder_grad

__all__ = ["Gamma"]

CLOSEST = 36.0
"""log α beyond which y/μ − 1 is below what float64 resolves: a target that is met exactly calls for no larger α."""

SERIES = 50.0
"""From here on log α − ψ(α) is its series in 1/α, to all digits; below, its two terms do not cancel."""


class Gamma(Likelihood):
    """Gamma(concentration="learned" | "input" | a number): η₁ is the logarithm of the mean.

    >>> import torch
    >>> Gamma(concentration=4.0).distribution(torch.tensor([2.0]).log()).variance
    tensor(1.)
    """

    concentration: Choice = "learned"

    needs = "positive numbers"
    link = "log"
    positive = ("concentration",)

    def validate(self) -> None:
        require_choice(self, "concentration")

    @property
    def support(self) -> Any:
        return constraints.positive

    def size(self, target: Target) -> int:
        return 1 + free(self.concentration)

    def shared(self, target: Target) -> int:
        return learned(self.concentration)

    def at_unit_dispersion(self, eta: Tensor, y: Tensor) -> tuple[Likelihood, Tensor, Tensor]:
        return Gamma(1.0), eta[..., :1], y  # φ = 1/α, V = μ²

    def distribution(self, eta: Tensor) -> StableGamma:
        log_mean = eta[..., 0]
        log_concentration = self._log_concentration(eta)
        concentration = bounded_exp(log_concentration).expand_as(log_mean)
        return StableGamma(concentration, bounded_exp(log_concentration - log_mean), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return _log_density(y.to(eta.dtype), eta[..., 0], self._log_concentration(eta))

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y, log_mean, log_alpha = y.to(eta.dtype), eta[..., 0], self._log_concentration(eta)
        log_ratio, alpha = y.log() - log_mean, bounded_exp(log_alpha)
        deviance = bounded_exp(log_ratio) - 1 - log_ratio
        value = -gamma_remainder(log_alpha) - alpha * deviance - y.log()
        of_mean = alpha * (bounded_exp_grad(log_ratio) - 1)
        if not isinstance(self.concentration, str):
            return value, of_mean.unsqueeze(-1)
        of_alpha = -gamma_remainder_grad(log_alpha) - bounded_exp_grad(log_alpha) * deviance
        return value, scores([of_mean], [within(eta[..., 1], log_alpha, of_alpha)], self.concentration)

    def _log_concentration(self, eta: Tensor) -> Tensor:
        (log_concentration,) = logarithms(eta, 1, self.concentration)
        return log_concentration.clamp_max(CLOSEST)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The mean, and α by Newton's method."""
        origin = y.mean()
        return self.from_statistics(fraction.T @ self.statistics(y, origin), origin)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        gap = (y - origin) / origin
        log_ratio = torch.where(gap.abs() < 0.5, torch.log1p(gap), y.log() - origin.log())
        return torch.stack([gap, log_ratio]).movedim(0, -1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        gap, log_ratio = mean.unbind(-1)
        shift = torch.log1p(gap)
        return arrange([origin.log() + shift], [_solve(shift - log_ratio)], self.concentration)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The mean, and α from the gap between the logarithm of the mean and the mean of the logarithm."""
        log_mean = weighted.mean(y, fraction).log()
        gap = (log_mean - weighted.mean(y.log(), fraction)).clamp_min(1e-8)
        guess = arrange([log_mean], [_roughly(gap).log()], self.concentration)
        return guess, torch.ones_like(guess)


class StableGamma(distributions.Gamma):
    """torch's Gamma, whose log_prob stays exact as α grows.

    >>> import torch
    >>> StableGamma(torch.tensor(1e8), torch.tensor(1e8)).log_prob(torch.tensor(1.0))
    tensor(8.2914)
    """

    def log_prob(self, value: Tensor) -> Tensor:
        log_concentration = self.concentration.log()
        return _log_density(value, log_concentration - self.rate.log(), log_concentration)


def _log_density(y: Tensor, log_mean: Tensor, log_concentration: Tensor) -> Tensor:
    log_y = y.log()
    log_ratio = log_y - log_mean
    # α log α − α − log Γ(α) and α (y/μ − 1 − log(y/μ)) are each exact where α is large; their parts are not
    deviance = bounded_exp(log_ratio) - 1 - log_ratio
    return -gamma_remainder(log_concentration) - bounded_exp(log_concentration) * deviance - log_y


def _solve(gap: Tensor) -> Tensor:
    """log α where log α − ψ(α), which falls from ∞ to 0 as α grows, equals the gap between log mean y and mean log y.

    The logarithm of the left side is all but linear in log α, so that a few steps of Newton's method suffice.
    """
    gap = gap.clamp(1e-16, 1e8)  # no spread: α ends at what digits can resolve
    log_alpha = _roughly(gap).log()
    for _ in range(6):
        alpha = log_alpha.exp()
        u = 1 / alpha.clamp_min(SERIES)
        v = u.square()
        large = u * (1 / 2 + u * (1 / 12 - v * (1 / 120 - v / 252)))
        derivative = -u * (1 / 2 + u * (1 / 6 - v * (1 / 30 - v / 42)))  # of `large` in log α
        small = alpha.clamp_max(SERIES)
        value = torch.where(alpha < SERIES, small.log() - torch.digamma(small), large)
        derivative = torch.where(alpha < SERIES, 1 - small * torch.polygamma(1, small), derivative)
        log_alpha = log_alpha - (value.log() - gap.log()) * value / derivative
    return log_alpha


def _roughly(gap: Tensor) -> Tensor:
    """α to within 2 % of where log α − ψ(α) equals the gap."""
    return (3 - gap + ((gap - 3).square() + 24 * gap).sqrt()) / (12 * gap)
