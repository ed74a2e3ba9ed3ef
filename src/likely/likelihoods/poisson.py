"""Poisson: counts of events that happen at a rate.

−log p(y | x) = λ − y log λ + log y!,   λ = exp(η)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from . import weighted
from .base import Likelihood, Target
from .special import bounded_exp, bounded_exp_grad, constant, exp_limit

__all__ = ["Poisson"]


class Poisson(Likelihood):
    """Poisson(): η is the logarithm of the rate.

    >>> import torch
    >>> Poisson().weighted_mle(torch.tensor([1.0, 3.0]), torch.ones(2)).exp()
    tensor([2.])
    """

    needs = "counts 0, 1, 2, …"
    link = "log"

    @property
    def support(self) -> Any:
        return constraints.nonnegative_integer

    def size(self, target: Target) -> int:
        return 1

    def distribution(self, eta: Tensor) -> distributions.Poisson:
        return distributions.Poisson(bounded_exp(eta[..., 0]), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        y = y.to(eta.dtype)
        return y * eta[..., 0] - bounded_exp(eta[..., 0]) - torch.lgamma(y + 1)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """y − rate and rate."""
        log_prob, score = self.smooth_value_and_grad(eta, y)
        return log_prob, score, (y.to(eta).unsqueeze(-1) - score).unsqueeze(-1)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        value, score = self.smooth_value_and_grad(eta, y)
        return value - torch.lgamma(y.to(eta) + 1), score

    def smooth_value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Without log y!, which takes longer than the rest."""
        y, log_rate = y.to(eta), eta[..., 0]
        return y * log_rate - bounded_exp(log_rate), (y - bounded_exp_grad(log_rate)).unsqueeze(-1)

    def total_and_grad(
        self,
        eta: Tensor,
        y: Tensor,
        weight: Tensor | None = None,
        scale: float = 1.0,
        shared: Tensor | None = None,
    ) -> tuple[float, Tensor, Tensor | None]:
        if weight is not None or eta.shape[:-1] != y.shape:
            return super().total_and_grad(eta, y, weight, scale, shared)
        y, log_rate, number = y.to(eta), eta[..., 0], partial(constant, dtype=eta.dtype, device=eta.device)
        rate = log_rate.exp()
        expected = rate.sum().item()
        if not expected < exp_limit(eta.dtype):  # one of them may be where the exponential is continued
            return super().total_and_grad(eta, y, weight, scale, shared)
        factorials = torch.lgamma(y + number(1.0)).sum().item()
        total = torch.dot(y.reshape(-1), log_rate.reshape(-1)).item() - expected - factorials
        return total, torch.sub(y, rate, out=rate).mul_(number(scale)).unsqueeze(-1), None

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The logarithm of the weighted mean."""
        return weighted.mean(y, fraction).clamp_min(weighted.FLOOR).log().unsqueeze(-1)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        return y.unsqueeze(-1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        return mean.clamp_min(weighted.FLOOR).log()
