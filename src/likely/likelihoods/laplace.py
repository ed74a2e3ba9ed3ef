"""Laplace: the likelihood of least absolute deviations; its location is the conditional median.

−log p(y | x) = |y − m| / b + log 2b,   m = η₁,   b = fixed | exp(learned) | exp(η₂(x))
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, distributions

from . import weighted
from .base import Likelihood, Target
from .choices import (
    Choice,
    arrange,
    free,
    learned,
    logarithms,
    require_choice,
)
from .normal import location_unit
from .special import bounded_exp, bounded_log

__all__ = ["Laplace"]


KINK = 1e-4
"""In units of s: within this distance of y the kink of |y − μ| is treated as round."""


class Laplace(Likelihood):
    """Laplace(scale="learned" | "input" | a number).

    >>> import torch
    >>> Laplace(scale=2.0).weighted_mle(torch.tensor([0.0, 1.0, 50.0]), torch.ones(3))
    tensor([1.])
    """

    scale: Choice = "learned"

    link = "identity"
    positive = ("scale",)

    def validate(self) -> None:
        require_choice(self, "scale")

    def size(self, target: Target) -> int:
        return 1 + free(self.scale)

    def shared(self, target: Target) -> int:
        return learned(self.scale)

    def distribution(self, eta: Tensor) -> distributions.Laplace:
        scale = bounded_exp(bounded_log(logarithms(eta, 1, self.scale)[0]))
        return distributions.Laplace(eta[..., 0], scale.expand_as(eta[..., 0]), validate_args=False)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0])
        return -(y - eta[..., 0]).abs() * (-log_scale).exp() - log_scale - math.log(2)

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Information 1/(s·|y − μ|) for μ, as if |r| were the parabola that touches it from above; 1 for log s.

        The true second derivative is 0, which leads nowhere; with this one Newton's steps are the reweighted least
        squares of least absolute deviations. The kink is rounded within `KINK`·s, so that the steps come to rest.
        """
        log_prob, score = self.smooth_value_and_grad(eta, y)
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0])
        distance = ((y - eta[..., 0]).abs() * (-log_scale).exp()).clamp_min(KINK)
        parts = [(-2 * log_scale).exp() / distance, torch.ones_like(distance)][: eta.shape[-1]]
        return log_prob, score, torch.diag_embed(torch.stack(parts, -1))

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0])
        gap = (y - eta[..., 0]) * (inverse := (-log_scale).exp())
        distance = gap.abs()
        value = -distance - log_scale - math.log(2)
        if not isinstance(self.scale, str):
            return value, (gap.sign() * inverse).unsqueeze(-1)
        widening = torch.where(log_scale == eta[..., 1], distance - 1, 0.0)  # beyond its bound log s is constant
        return value, torch.stack([gap.sign() * inverse, widening], -1)

    def smooth_value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """|r| is a parabola within `KINK`·s of 0, so that Newton's steps come to rest there."""
        log_scale = bounded_log(logarithms(eta, 1, self.scale)[0])
        gap = (y - eta[..., 0]) * (-log_scale).exp()
        distance = gap.abs()
        rounded = torch.where(distance < KINK, 0.5 * (gap.square() / KINK + KINK), distance)
        pull = (gap / KINK).clamp(-1, 1)
        parts = [pull * (-log_scale).exp(), pull * gap - 1][: eta.shape[-1]]
        return -rounded - log_scale.expand_as(rounded), torch.stack(parts, -1)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """The weighted median and the logarithm of the mean distance from it."""
        middle = weighted.median(y, fraction)
        distance = (fraction * (y.unsqueeze(-1) - middle).abs()).sum(0)
        floor = weighted.RESOLUTION * weighted.magnitude(y, fraction)
        return arrange([middle], [torch.maximum(distance, floor).log()], self.scale)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the standard deviation."""
        guess = arrange([weighted.mean(y, fraction)], [weighted.spread(y, fraction).log()], self.scale)
        return guess, location_unit(guess, y, fraction)
