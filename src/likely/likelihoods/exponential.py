"""Exponential: waiting times without memory.

−log p(y | x) = log μ + y/μ,   mean μ = exp(η)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from . import weighted
from .base import Likelihood, Target
from .special import bounded_exp, bounded_exp_grad

__all__ = ["Exponential"]


class Exponential(Likelihood):
    """Exponential(): η is the logarithm of the mean.

    >>> import torch
    >>> Exponential().distribution(torch.tensor([2.0]).log()).mean
    tensor(2.)
    """

    needs = "numbers 0 or above"
    link = "log"

    @property
    def support(self) -> Any:
        return constraints.nonnegative

    def size(self, target: Target) -> int:
        return 1

    def distribution(self, eta: Tensor) -> distributions.Exponential:
        return distributions.Exponential(bounded_exp(-eta[..., 0]), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return -eta[..., 0] - y * bounded_exp(-eta[..., 0])

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y, log_mean = y.to(eta.dtype), eta[..., 0]
        return -log_mean - y * bounded_exp(-log_mean), (y * bounded_exp_grad(-log_mean) - 1).unsqueeze(-1)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The logarithm of the weighted mean."""
        return weighted.mean(y, fraction).clamp_min(1e-30).log().unsqueeze(-1)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        return y.unsqueeze(-1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        return mean.clamp_min(1e-30).log()

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The magnitude of y."""
        guess = weighted.magnitude(y, fraction).log().unsqueeze(-1)
        return guess, torch.ones_like(guess)
