"""Bernoulli: a label 0 or 1; the likelihood of logistic regression.

−log p(y | x) = softplus((1 − 2y)·η),   P(y = 1) = 1 / (1 + exp(−η))
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints
from torch.nn.functional import logsigmoid

from . import weighted
from .base import Likelihood, Target

__all__ = ["Bernoulli"]


class Bernoulli(Likelihood):
    """Bernoulli(): η is one logit.

    >>> import torch
    >>> Bernoulli().log_prob(torch.tensor([[1e4], [1e4]]), torch.tensor([1.0, 0.0]))
    tensor([-0.0000e+00, -1.0000e+04])
    """

    labels = True
    needs = "labels 0 and 1"

    @property
    def support(self) -> Any:
        return constraints.boolean

    def size(self, target: Target) -> int:
        return 1

    def distribution(self, eta: Tensor) -> distributions.Bernoulli:
        return distributions.Bernoulli(logits=eta[..., 0], validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        return logsigmoid((2 * y.to(eta.dtype) - 1) * eta[..., 0])

    def estimate(self, y: Tensor, share: Tensor) -> Tensor:
        """The log odds of the weighted mean."""
        return log_odds(weighted.mean(y, share)).unsqueeze(-1)


def log_odds(probability: Tensor) -> Tensor:
    """log(p / (1 − p)), finite at 0 and 1."""
    return torch.logit(probability, eps=weighted.FLOOR)
