"""Negative binomial: counts that vary more than a Poisson's, with variance μ + α μ².

p(y | x) = Γ(y + r) / (Γ(r) y!) · (r / (r + μ))^r · (μ / (r + μ))^y,   r = 1/α

μ = exp(η₁),   dispersion α = fixed | exp(learned) | exp(η₂(x));   α → 0 is the Poisson
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
from .special import gamma_remainder, gamma_remainder_grad, log_sigmoid

__all__ = ["NegativeBinomial"]

WIDEST = 40.0
"""|log α| counts up to here: below it is a Poisson to every digit, above it y is 0 or astronomical."""


class NegativeBinomial(Likelihood):
    """NegativeBinomial(dispersion="learned" | "input" | a number): η₁ is the logarithm of the mean.

    >>> import torch
    >>> NegativeBinomial(dispersion=0.5).distribution(torch.tensor([2.0]).log()).variance
    tensor(4.)
    """

    dispersion: Choice = "learned"

    needs = "counts 0, 1, 2, …"
    link = "log"
    positive = ("dispersion",)

    def validate(self) -> None:
        require_choice(self, "dispersion")

    @property
    def support(self) -> Any:
        return constraints.nonnegative_integer

    def size(self, target: Target) -> int:
        return 1 + free(self.dispersion)

    def shared(self, target: Target) -> int:
        return learned(self.dispersion)

    def distribution(self, eta: Tensor) -> StableNegativeBinomial:
        log_mean, log_total = eta[..., 0], self._log_total(eta)
        total = log_total.exp().expand_as(log_mean)
        return StableNegativeBinomial(total, logits=log_mean - log_total, validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return _log_density(y.to(eta.dtype), eta[..., 0], self._log_total(eta))

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y, log_mean, log_total = y.to(eta.dtype), eta[..., 0], self._log_total(eta)
        total = log_total.exp()
        value = _log_density(y, log_mean, log_total)
        expected = (y + total) * (log_mean - log_total).sigmoid()
        if not isinstance(self.dispersion, str):
            return value, (y - expected).unsqueeze(-1)
        tilt = torch.log1p(y / total) + log_sigmoid(log_total - log_mean)
        remainders = gamma_remainder_grad((y + total).log()) * total / (y + total) - gamma_remainder_grad(log_total)
        of_total = remainders + total * tilt + (expected - y)
        return value, scores([y - expected], [within(eta[..., 1], -log_total, -of_total)], self.dispersion)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the dispersion that match the first two moments."""
        mean = weighted.mean(y, fraction).clamp_min(weighted.FLOOR)
        dispersion = ((weighted.variance(y, fraction) - mean) / mean.square()).clamp(1e-4, 1e4)
        guess = arrange([mean.log()], [dispersion.log()], self.dispersion)
        return guess, torch.ones_like(guess)

    def _log_total(self, eta: Tensor) -> Tensor:
        (log_dispersion,) = logarithms(eta, 1, self.dispersion)
        return -log_dispersion.clamp(-WIDEST, WIDEST)


class StableNegativeBinomial(distributions.NegativeBinomial):
    """torch's negative binomial, whose log_prob stays exact as it nears the Poisson.

    >>> import torch
    >>> count = StableNegativeBinomial(torch.tensor(1e12), logits=torch.tensor(1e-12).log())
    >>> count.log_prob(torch.tensor(0.0))
    tensor(-1.0000)
    """

    def log_prob(self, value: Tensor) -> Tensor:
        log_total = self.total_count.log()
        return _log_density(value.to(log_total.dtype), self.logits + log_total, log_total)


def _log_density(y: Tensor, log_mean: Tensor, log_total: Tensor) -> Tensor:
    total = log_total.exp()
    # log Γ(y + r) − log Γ(r) = remainders + (y + r) log(1 + y/r) + y log r − y, exact for any r
    remainders = gamma_remainder((y + total).log()) - gamma_remainder(log_total)
    tilt = torch.log1p(y / total) + log_sigmoid(log_total - log_mean)
    return remainders + (y + total) * tilt + y * (log_mean - 1) - torch.lgamma(y + 1)
