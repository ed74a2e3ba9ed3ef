"""Beta: numbers strictly between 0 and 1, such as rates and fractions.

log p(y | x) = log Γ(φ) − log Γ(a) − log Γ(b) + (a − 1) log y + (b − 1) log(1 − y),   a = mφ,  b = (1 − m)φ

mean m = 1 / (1 + exp(−η₁)),   precision φ = fixed | exp(learned) | exp(η₂(x));   variance m (1 − m) / (1 + φ)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from .base import Likelihood, Target
from .choices import (
    Choice,
    arrange,
    free,
    learned,
    logarithms,
    require_choice,
    scores,
)
from .mle import ascend
from .special import bounded_exp, bounded_exp_grad, gamma_remainder, gamma_remainder_grad, log_sigmoid

__all__ = ["Beta"]


class Beta(Likelihood):
    """Beta(precision="learned" | "input" | a number): η₁ is the logit of the mean.

    >>> import torch
    >>> Beta(precision=3.0).distribution(torch.tensor([0.0])).variance
    tensor(0.0625)
    """

    precision: Choice = "learned"

    needs = "numbers strictly between 0 and 1"
    positive = ("precision",)

    def validate(self) -> None:
        require_choice(self, "precision")

    @property
    def support(self) -> Any:
        return _OPEN_INTERVAL

    def size(self, target: Target) -> int:
        return 1 + free(self.precision)

    def shared(self, target: Target) -> int:
        return learned(self.precision)

    def distribution(self, eta: Tensor) -> StableBeta:
        (log_precision,) = logarithms(eta, 1, self.precision)
        log_mean, log_rest = log_sigmoid(eta[..., 0]), log_sigmoid(-eta[..., 0])
        return StableBeta(
            bounded_exp(log_precision + log_mean), bounded_exp(log_precision + log_rest), validate_args=False
        )

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        (log_precision,) = logarithms(eta, 1, self.precision)
        log_mean, log_rest = log_sigmoid(eta[..., 0]), log_sigmoid(-eta[..., 0])
        return _log_density(y.log(), torch.log1p(-y), log_mean, log_rest, log_precision)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        (log_precision,) = logarithms(eta, 1, self.precision)
        mean, rest = eta[..., 0].sigmoid(), (-eta[..., 0]).sigmoid()
        log_mean, log_rest = log_sigmoid(eta[..., 0]), log_sigmoid(-eta[..., 0])
        log_y, log_other = y.log(), torch.log1p(-y)
        value = _log_density(log_y, log_other, log_mean, log_rest, log_precision)
        log_a, log_b = log_precision + log_mean, log_precision + log_rest
        of_a = bounded_exp_grad(log_a) * (log_y - log_mean) - gamma_remainder_grad(log_a)
        of_b = bounded_exp_grad(log_b) * (log_other - log_rest) - gamma_remainder_grad(log_b)
        of_mean = rest * (of_a - bounded_exp(log_a)) - mean * (of_b - bounded_exp(log_b))
        return value, scores([of_mean], [gamma_remainder_grad(log_precision) + of_a + of_b], self.precision)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """Numerically, from the means of log y and log(1 − y) alone."""
        return self.from_statistics(fraction.T @ self.statistics(y, y), y)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor:
        return torch.stack([y.log(), torch.log1p(-y)]).movedim(0, -1)

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        log_y, log_other = mean.reshape(-1, 2).unbind(-1)
        guess = self._guess(log_y, log_other)

        def objective(eta: Tensor) -> Tensor:
            (log_precision,) = logarithms(eta, 1, self.precision)
            log_mean, log_rest = log_sigmoid(eta[..., 0]), log_sigmoid(-eta[..., 0])
            return _log_density(log_y, log_other, log_mean, log_rest, log_precision)

        return ascend(objective, guess, torch.ones_like(guess)).reshape(*mean.shape[:-1], -1)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """Where the geometric means of y and 1 − y point to."""
        log_y, log_other = (fraction.T @ self.statistics(y, y)).unbind(-1)
        guess = self._guess(log_y, log_other)
        return guess, torch.ones_like(guess)

    def _guess(self, log_y: Tensor, log_other: Tensor) -> Tensor:
        """As if φ were large (the geometric means are m and 1 − m, of which 1/2φ is lost), or small (ψ(a) is −1/a)."""
        lost = -torch.logaddexp(log_y, log_other)
        few = (lost > 1) | (torch.minimum(log_y, log_other) < -15)
        one, other = (-log_y).clamp_min(1e-300).log(), (-log_other).clamp_min(1e-300).log()
        logit = torch.where(few, 0.5 * (other - one), log_y - log_other)
        log_precision = torch.where(few, -0.5 * (one + other), -(2 * lost).clamp_min(1e-16).log())
        return arrange([logit], [log_precision], self.precision)

    def placeholder(self, y: Tensor) -> Tensor:
        return torch.full((), 0.5, dtype=y.dtype, device=y.device)


class StableBeta(distributions.Beta):
    """torch's Beta, whose log_prob stays exact as φ grows, and whose samples are never rounded to 0 or 1.

    >>> import torch
    >>> StableBeta(torch.tensor(100.0), torch.tensor(100.0)).log_prob(torch.tensor(0.5))
    tensor(2.4221)
    """

    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mean, log_rest = -torch.log1p(b / a), -torch.log1p(a / b)
        return _log_density(value.log(), torch.log1p(-value), log_mean, log_rest, (a + b).log())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        draw = super().rsample(sample_shape)
        limits = torch.finfo(draw.dtype)
        return draw.clamp(limits.tiny, 1 - limits.eps)


def _log_density(log_y: Tensor, log_other: Tensor, log_mean: Tensor, log_rest: Tensor, log_precision: Tensor) -> Tensor:
    """From log y and log(1 − y), in which it is linear; so their means give the mean of the log-density."""
    log_a, log_b = log_precision + log_mean, log_precision + log_rest
    # Γ's by their remainders: φ log φ − a log a − b log b is −a log m − b log(1 − m)
    remainders = gamma_remainder(log_precision) - gamma_remainder(log_a) - gamma_remainder(log_b)
    pull = bounded_exp(log_a) * (log_y - log_mean) + bounded_exp(log_b) * (log_other - log_rest)
    return remainders + pull - log_y - log_other


class _OpenInterval(constraints.interval):
    """0 < y < 1."""

    def check(self, value: Tensor) -> Tensor:
        return (value > 0) & (value < 1)


_OPEN_INTERVAL = _OpenInterval(0.0, 1.0)
