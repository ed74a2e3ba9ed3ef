"""Binomial: how many of a known number of trials succeed.

log p(y | x) = log C(n, y) + y log p + (n − y) log(1 − p),   p = 1 / (1 + exp(−η))
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from ..core.spec import require
from . import weighted
from .base import Likelihood, Target
from .bernoulli import log_odds
from .special import log_sigmoid

__all__ = ["Binomial"]


class Binomial(Likelihood):
    """Binomial(total=1): η is the logit of one trial's success, `total` the number of trials.

    >>> import torch
    >>> Binomial(total=10).distribution(torch.tensor([0.0])).mean
    tensor(5.)
    """

    total: int = 1

    def validate(self) -> None:
        whole = isinstance(self.total, int) and not isinstance(self.total, bool)
        require(whole and self.total >= 1, self, "total", "an integer of trials, 1 or more")

    @property
    def needs(self) -> str:  # type: ignore[override]
        """The support in words."""
        return f"counts 0, …, {self.total}"

    @property
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total)

    def size(self, target: Target) -> int:
        return 1

    def distribution(self, eta: Tensor) -> distributions.Binomial:
        total = torch.full_like(eta[..., 0], self.total)
        return distributions.Binomial(total, logits=eta[..., 0], validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        y, logit = y.to(eta.dtype), eta[..., 0]
        choices = math.lgamma(self.total + 1) - torch.lgamma(y + 1) - torch.lgamma(self.total - y + 1)
        return choices + y * log_sigmoid(logit) + (self.total - y) * log_sigmoid(-logit)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.log_prob(eta, y), (y.to(eta.dtype) - self.total * eta[..., 0].sigmoid()).unsqueeze(-1)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The log odds of the weighted fraction of successes."""
        return log_odds(weighted.mean(y, fraction) / self.total).unsqueeze(-1)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        return y.unsqueeze(-1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        return log_odds(mean / self.total)
