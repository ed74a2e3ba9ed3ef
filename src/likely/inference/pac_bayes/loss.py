"""Bounded losses for every likelihood: those that bounds speak of lie in [0, 1].

    labels     exact: 1 if the most probable label is wrong      smooth: min(−log p(y | η), B) / log 2 ≥ exact
    others     both:  p₀(y) / (p₀(y) + p(y | η))                 p₀: the likelihood without x

The smooth loss of labels stands in for the exact one in training only; it is bounded too, by B/log 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...likelihoods import Likelihood

__all__ = ["BoundedLoss"]

LEAST = 1e-4
"""Probabilities below it cost no more."""


@dataclass(frozen=True)
class BoundedLoss:
    """The loss of each target (draws, n, *positions), from η (draws, n, *positions, size).

    >>> from likely.likelihoods import Bernoulli
    >>> loss = BoundedLoss(Bernoulli(), torch.zeros(1))
    >>> loss.exact(torch.tensor([[[2.0], [-1.0]]]), torch.tensor([1.0, 1.0]))
    tensor([[0., 1.]])
    """

    likelihood: Likelihood
    reference: Tensor
    """η of p₀, (size,) or (*positions, size)."""

    def smooth(self, eta: Tensor, y: Tensor) -> Tensor:
        """What training lowers."""
        if not self.likelihood.labels:
            return self._beside_reference(eta, y)
        return (-self.likelihood.log_prob(eta, y)).clamp_max(-math.log(LEAST)) / math.log(2)

    def exact(self, eta: Tensor, y: Tensor) -> Tensor:
        """What the bound is about."""
        if not self.likelihood.labels:
            return self._beside_reference(eta, y)
        return (self.likelihood.probabilities(eta).argmax(-1) != y).to(eta)

    def _beside_reference(self, eta: Tensor, y: Tensor) -> Tensor:
        without = self.likelihood.log_prob(self.reference.to(eta).expand(eta.shape[1:]), y)
        return torch.sigmoid(without - self.likelihood.log_prob(eta, y))
