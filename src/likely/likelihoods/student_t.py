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
from .choices import Choice, arrange, columns, free, learned, logarithms, require_choice
from .mle import newton
from .normal import location_unit
from .special import gamma_remainder

__all__ = ["StudentT"]

WIDEST = 40.0
"""|log ν| counts up to here: beyond it the t is a Normal, or nothing at all, to every digit."""


class StudentT(Likelihood):
    """StudentT(df=4.0 | "learned" | "input", scale="learned" | "input" | a number).

    >>> import torch
    >>> StudentT(df=3.0, scale=2.0).distribution(torch.tensor([1.0])).variance
    tensor(12.)
    """

    df: Choice = 4.0
    scale: Choice = "learned"

    def validate(self) -> None:
        require_choice(self, "df")
        require_choice(self, "scale")

    def size(self, target: Target) -> int:
        return 1 + free(self.scale, self.df)

    def shared(self, target: Target) -> int:
        return learned(self.scale, self.df)

    def distribution(self, eta: Tensor) -> distributions.StudentT:
        location = eta[..., 0]
        log_scale, log_df = logarithms(eta, 1, self.scale, self.df)
        df = log_df.clamp(-WIDEST, WIDEST).exp()
        return distributions.StudentT(
            df.expand_as(location), location, log_scale.exp().expand_as(location), validate_args=False
        )

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        log_scale, log_df = logarithms(eta, 1, self.scale, self.df)
        log_df = log_df.clamp(-WIDEST, WIDEST)
        df = log_df.exp()
        half = 0.5 * df
        # log Γ(h + ½) − log Γ(h) − ½ log h, with the terms that grow with h cancelled on paper
        ratio = (
            gamma_remainder((half + 0.5).log())
            - gamma_remainder(log_df - math.log(2))
            + (half + 0.5) * torch.log1p(1 / df)
            - 0.5
        )
        z = (y - eta[..., 0]) * (-log_scale).exp()
        return ratio - 0.5 * math.log(2 * math.pi) - log_scale - (half + 0.5) * torch.log1p(z.square() / df)

    def estimate(self, y: Tensor, share: Tensor) -> Tensor:
        """By Newton's method, with a scale no finer than y can resolve: tied values would have it at 0."""
        eta = newton(self, y, share)
        column = columns(1, self.scale, self.df)[0]
        if column is None:
            return eta
        floor = (weighted.RESOLUTION * weighted.magnitude(y, share)).log().unsqueeze(-1)
        is_scale = torch.arange(eta.shape[-1], device=eta.device) == column
        return torch.where(is_scale, torch.maximum(eta, floor), eta)

    def start(self, y: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """The median, the standard deviation, and tails of some weight."""
        location, log_scale = weighted.median(y, share), weighted.spread(y, share).log()
        guess = arrange([location], [log_scale, torch.full_like(location, math.log(5.0))], self.scale, self.df)
        return guess, location_unit(guess, y, share)
