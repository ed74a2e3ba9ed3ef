"""Bernoulli: a label 0 or 1; the likelihood of logistic regression.

−log p(y | x) = softplus((1 − 2y)·η),   P(y = 1) = 1 / (1 + exp(−η))
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints
from torch.nn.functional import binary_cross_entropy_with_logits

from . import weighted
from .base import Likelihood, Target
from .special import constant, log_sigmoid

__all__ = ["Bernoulli", "BernoulliDistribution"]


class BernoulliDistribution(distributions.Bernoulli):
    """torch's Bernoulli, whose `log_prob` also takes labels as integers and booleans, as that of Categorical does.

    >>> BernoulliDistribution(probs=torch.tensor(0.5)).log_prob(torch.tensor([0, 1])).exp()
    tensor([0.5000, 0.5000])
    """

    def log_prob(self, value: Tensor) -> Tensor:
        return super().log_prob(value if value.is_floating_point() else value.to(self.logits.dtype))


class Bernoulli(Likelihood):
    """Bernoulli(): η is one logit.

    >>> import torch
    >>> Bernoulli().log_prob(torch.tensor([[1e4], [1e4]]), torch.tensor([1.0, 0.0]))
    tensor([    -0., -10000.])
    """

    labels = True
    needs = "labels 0 and 1"

    @property
    def support(self) -> Any:
        return constraints.boolean

    def size(self, target: Target) -> int:
        return 1

    def distribution(self, eta: Tensor) -> BernoulliDistribution:
        return BernoulliDistribution(logits=eta[..., 0], validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return log_sigmoid((2 * y.to(eta.dtype) - 1) * eta[..., 0])

    def quick_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        """By torch's own cross-entropy, which loses the digits of log p next to 0."""
        margin = eta[..., 0]
        return -binary_cross_entropy_with_logits(margin, y.to(margin.dtype).expand_as(margin), reduction="none")

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """y − p and p(1 − p)."""
        log_prob, score = self.value_and_grad(eta, y)
        mean = y.to(eta).unsqueeze(-1) - score
        return log_prob, score, (mean * (1 - mean)).unsqueeze(-1)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        sign = 2 * y.to(eta.dtype) - 1
        margin = sign * eta[..., 0]
        return log_sigmoid(margin), (sign * (-margin).sigmoid()).unsqueeze(-1)

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
        number = partial(constant, dtype=eta.dtype, device=eta.device)
        sign = torch.add(number(-1.0), y.to(eta), alpha=2)
        margin = eta[..., 0] * sign
        total = log_sigmoid(margin).sum().item()
        return total, margin.neg_().sigmoid_().mul_(sign).mul_(number(scale)).unsqueeze(-1), None

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The log odds of the weighted mean."""
        return log_odds(weighted.mean(y, fraction)).unsqueeze(-1)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        return y.unsqueeze(-1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        return log_odds(mean)


def log_odds(probability: Tensor) -> Tensor:
    """log(p / (1 − p)), finite at 0 and 1."""
    return torch.logit(probability, eps=weighted.FLOOR)
