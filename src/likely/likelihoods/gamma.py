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
from .choices import Choice, arrange, free, learned, logarithms, require_choice
from .special import bounded_exp, gamma_remainder

__all__ = ["Gamma"]


class Gamma(Likelihood):
    """Gamma(concentration="learned" | "input" | a number): η₁ is the logarithm of the mean.

    >>> import torch
    >>> Gamma(concentration=4.0).distribution(torch.tensor([2.0]).log()).variance
    tensor(1.)
    """

    concentration: Choice = "learned"

    needs = "positive numbers"

    def validate(self) -> None:
        require_choice(self, "concentration")

    @property
    def support(self) -> Any:
        return constraints.positive

    def size(self, target: Target) -> int:
        return 1 + free(self.concentration)

    def shared(self, target: Target) -> int:
        return learned(self.concentration)

    def distribution(self, eta: Tensor) -> StableGamma:
        log_mean = eta[..., 0]
        (log_concentration,) = logarithms(eta, 1, self.concentration)
        concentration = bounded_exp(log_concentration).expand_as(log_mean)
        return StableGamma(concentration, bounded_exp(log_concentration - log_mean), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        (log_concentration,) = logarithms(eta, 1, self.concentration)
        return _log_density(y.to(eta.dtype), eta[..., 0], log_concentration)

    def start(self, y: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """The mean, and α from the gap between the logarithm of the mean and the mean of the logarithm."""
        log_mean = weighted.mean(y, share).log()
        gap = (log_mean - weighted.mean(y.log(), share)).clamp(1e-8, 1e8)
        concentration = (3 - gap + ((gap - 3).square() + 24 * gap).sqrt()) / (12 * gap)
        guess = arrange([log_mean], [concentration.clamp_min(1e-8).log()], self.concentration)
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
