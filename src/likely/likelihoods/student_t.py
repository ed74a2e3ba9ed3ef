"""Student's t: a location and a scale with heavy tails, so that outliers pull little.

log p(y | x) = log Γ((ν+1)/2) − log Γ(ν/2) − ½ log νπ − log σ − (ν+1)/2 · log(1 + z²/ν),   z = (y − μ)/σ

μ = η₁,   σ and ν = fixed | exp(learned) | exp(η(x))
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
    columns,
    free,
    learned,
    logarithms,
    require_choice,
    scores,
    within,
)
from .mle import newton
from .special import LOG_2PI, bounded_exp, bounded_log, gamma_remainder, gamma_remainder_grad

__all__ = ["StudentT"]

NARROWEST, WIDEST = -10.0, 40.0
"""log ν counts between these: above, the t is a Normal to every digit; below, it says nothing of y."""


class StudentT(Likelihood):
    """StudentT(df=4.0 | "learned" | "input", scale="learned" | "input" | a number).

    >>> import torch
    >>> StudentT(df=3.0, scale=2.0).distribution(torch.tensor([1.0])).variance
    tensor(12.)
    """

    df: Choice = 4.0
    scale: Choice = "learned"

    link = "identity"
    positive = ("scale", "df")

    def validate(self) -> None:
        require_choice(self, "df")
        require_choice(self, "scale")

    def size(self, target: Target) -> int:
        return 1 + free(self.scale, self.df)

    def shared(self, target: Target) -> int:
        return learned(self.scale, self.df)

    def distribution(self, eta: Tensor) -> StableStudentT:
        location = eta[..., 0]
        log_scale, log_df = logarithms(eta, 1, self.scale, self.df)
        df, scale = log_df.clamp(NARROWEST, WIDEST).exp(), bounded_exp(bounded_log(log_scale))
        return StableStudentT(df.expand_as(location), location, scale.expand_as(location), validate_args=False)

    def mean(self, eta: Tensor) -> Tensor:
        """The location, also where tails are too heavy (df ≤ 1) for a mean to exist."""
        return eta[..., 0]

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        log_scale, log_df = logarithms(eta, 1, self.scale, self.df)
        return _log_density(y, eta[..., 0], bounded_log(log_scale), log_df.clamp(NARROWEST, WIDEST))

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        raw_scale, raw_df = logarithms(eta, 1, self.scale, self.df)
        log_scale, log_df = bounded_log(raw_scale), raw_df.clamp(NARROWEST, WIDEST)
        df, inverse = log_df.exp(), (-log_scale).exp()
        z = (y - eta[..., 0]) * inverse
        value = _log_density(y, eta[..., 0], log_scale, log_df)
        pull = (df + 1) * z / (df + z.square())  # what a Normal would have as z
        of_scale, of_df = within(raw_scale, log_scale, pull * z - 1), torch.zeros_like(log_df)
        if isinstance(self.df, str):
            half = 0.5 * df
            rest = gamma_remainder_grad((half + 0.5).log()) * half / (half + 0.5)
            rest = rest - gamma_remainder_grad(log_df - math.log(2))
            tail = torch.log1p(1 / df) - torch.log1p(z.square() / df)
            of_df = within(raw_df, log_df, rest + half * tail + 0.5 * (pull * z - 1))
        return value, scores([pull * inverse], [of_scale, of_df], self.scale, self.df)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """By Newton's method, with a scale no finer than y can resolve: tied values would have it at 0."""
        eta = newton(self, y, fraction)
        column = columns(1, self.scale, self.df)[0]
        if column is None:
            return eta
        typical = torch.maximum(weighted.median(y, fraction).abs(), _spread(y, fraction)).unsqueeze(-1)
        is_scale = torch.arange(eta.shape[-1], device=eta.device) == column
        return torch.where(is_scale, torch.maximum(eta, (weighted.RESOLUTION * typical).log()), eta)

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """The median, the median distance from it, and tails of some weight."""
        location, spread = weighted.median(y, fraction), _spread(y, fraction)
        guess = arrange([location], [spread.log(), torch.full_like(location, math.log(5.0))], self.scale, self.df)
        unit = weighted.robust_spread(y, fraction, weighted.spread(y, fraction))
        return guess, torch.cat([unit.unsqueeze(-1), torch.ones_like(guess[..., 1:])], -1)


class StableStudentT(distributions.StudentT):
    """torch's Student t, whose log_prob stays exact as ν grows.

    >>> import torch
    >>> t = StableStudentT(torch.tensor(1e12), torch.tensor(0.0), torch.tensor(1.0))
    >>> t.log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    def log_prob(self, value: Tensor) -> Tensor:
        return _log_density(value, self.loc, self.scale.log(), self.df.log())


def _log_density(y: Tensor, location: Tensor, log_scale: Tensor, log_df: Tensor) -> Tensor:
    df = log_df.exp()
    half = 0.5 * df
    # log Γ(h + ½) − log Γ(h) − ½ log h, h = ν/2, with the terms that grow with h cancelled on paper
    remainders = gamma_remainder((half + 0.5).log()) - gamma_remainder(log_df - math.log(2))
    z = (y - location) * (-log_scale).exp()
    tail = torch.log1p(1 / df) - torch.log1p(z.square() / df)
    return remainders + (half + 0.5) * tail - 0.5 - 0.5 * LOG_2PI - log_scale


def _spread(y: Tensor, fraction: Tensor) -> Tensor:
    return weighted.robust_spread(y, fraction, weighted.spread(y, fraction))
