"""Mixture of Normals: weights, means and widths come from a network (a mixture density network).

    p(y | x) = Σₖ πₖ N(y; μₖ, σₖ²),      π = softmax(η₁ … η_K),  μ = η_K₊₁ … η_₂K,  log σ = η_₂K₊₁ … η_₃K

Numbers that were recorded to a multiple of a step s (integers: s = 1) have probabilities instead of densities:

    P(y | x) = Σₖ πₖ [Φ((y + s/2 − μₖ)/σₖ) − Φ((y − s/2 − μₖ)/σₖ)]
"""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor, distributions
from torch.nn.functional import pad

from ..core.spec import is_integer, require
from . import weighted
from .base import Likelihood, Target
from .special import LOG_2PI, bounded_exp, bounded_log, log_normal_cdf

__all__ = ["NormalMixture"]

MOST = 1_000
"""Components, at most."""
ROUNDS = 40
"""Steps of EM from components at quantiles of y."""
NARROWEST = 0.02
"""The least width of a component in an estimate, in parts of the spread of y."""


class NormalMixture(Likelihood):
    """NormalMixture(components=5, step=None | the step that y was rounded to).

    With a `step`, y is a rounded number: its probability is that of all numbers that are rounded to it, draws are
    multiples of the step, and the mean is that of the numbers before rounding.

    >>> import torch
    >>> NormalMixture(2).mean(torch.tensor([0.0, 0.0, -1.0, 2.0, 0.0, 0.0]))
    tensor(0.5000)
    >>> NormalMixture(1, step=1.0).log_prob(torch.tensor([0.0, 0.0, 0.0]), torch.arange(-9.0, 10.0)).exp().sum()
    tensor(1.)
    """

    identified = False
    link = "identity"

    components: int = 5
    step: float | None = None

    @classmethod
    def example(cls) -> Self:
        return cls(2)

    def validate(self) -> None:
        fine = is_integer(self.components) and self.components <= MOST
        require(fine, self, "components", f"an integer from 1 to {MOST:,}")
        number = isinstance(self.step, int | float) and not isinstance(self.step, bool)
        require(self.step is None or (number and 0 < self.step < math.inf), self, "step", "None or a positive number")

    def size(self, target: Target) -> int:
        return 3 * self.components

    def shifted(self, eta: Tensor, offset: Tensor) -> Tensor:
        """All components move alike."""
        return eta + pad(offset.expand(*offset.shape[:-1], self.components), (self.components, self.components))

    def distribution(self, eta: Tensor) -> distributions.MixtureSameFamily:
        logits, mean, log_scale = eta.unflatten(-1, (3, self.components)).unbind(-2)
        mixing = distributions.Categorical(logits=logits, validate_args=False)
        parts = distributions.Normal(mean, bounded_exp(bounded_log(log_scale)), validate_args=False)
        if self.step is None:
            return distributions.MixtureSameFamily(mixing, parts, validate_args=False)
        return RoundedMixture(mixing, parts, self, eta)

    def mean(self, eta: Tensor) -> Tensor:
        logits, mean, _ = eta.unflatten(-1, (3, self.components)).unbind(-2)
        return (logits.softmax(-1) * mean).sum(-1)

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        logits = eta[..., : self.components]
        joint = logits + self._of_components(eta, y)
        return torch.logsumexp(joint, -1) - torch.logsumexp(logits, -1)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """A component pulls as a Normal would, by the probability that y is of it; rounded numbers by autograd."""
        if self.step is not None:
            return super().value_and_grad(eta, y)
        logits, mean, raw_scale = eta.unflatten(-1, (3, self.components)).unbind(-2)
        log_scale = bounded_log(raw_scale)
        z = (y.unsqueeze(-1) - mean) * (inverse := (-log_scale).exp())
        joint = logits - 0.5 * z.square() - log_scale - 0.5 * LOG_2PI
        level = torch.logsumexp(joint, -1, keepdim=True)
        own = (joint - level).exp()
        widening = torch.where(log_scale == raw_scale, own * (z.square() - 1), 0.0)
        value = level.squeeze(-1) - torch.logsumexp(logits, -1)
        return value, torch.cat([own - logits.softmax(-1), own * z * inverse, widening], -1)

    def _of_components(self, eta: Tensor, y: Tensor) -> Tensor:
        """log p(y | k), (…, K)."""
        _, mean, log_scale = eta.unflatten(-1, (3, self.components)).unbind(-2)
        log_scale = bounded_log(log_scale)
        z = (y.unsqueeze(-1) - mean) * (inverse := (-log_scale).exp())
        density = -0.5 * z.square() - log_scale - 0.5 * LOG_2PI
        if self.step is None:
            return density
        half = 0.5 * self.step * inverse
        low = -z.abs()  # in the lower tail, by symmetry: there the logarithm of Φ has all its digits
        upper, lower = log_normal_cdf(torch.stack([low + half, low - half])).unbind()
        gap = upper - lower
        narrow = gap < 0.02  # the density hardly changes inside the step, and the difference of Φ would cancel
        cell = upper + torch.log(-torch.expm1(-torch.where(narrow, 1.0, gap)))
        bend = torch.where(narrow, half, 0.0).square() * (torch.where(narrow, z, 0.0).square() - 1) / 6
        return torch.where(narrow, density + math.log(self.step) + bend, cell)

    # --- estimates without x ------------------------------------------------------------------------------------
    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """A local optimum, by EM: the global one has a component of no width on a single value."""
        return self.start(y, fraction)[0]

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """EM from components at quantiles of y; units are the widths that it ends at."""
        spread = weighted.spread(y, fraction).unsqueeze(-1)  # (k, 1)
        least = (NARROWEST * spread).clamp_min(0.3 * (self.step or 0.0))
        levels = (torch.arange(self.components, dtype=y.dtype, device=y.device) + 0.5) / self.components
        mean = _quantiles(y, fraction, levels)
        logits, width = torch.zeros_like(mean), torch.maximum(spread / self.components, least).expand_as(mean)
        eta = torch.cat([logits, mean, width.log()], -1)
        weight = fraction.T.unsqueeze(-1)  # (k, n, 1)
        for _ in range(ROUNDS):
            by_row = eta.unsqueeze(1)  # (k, 1, 3K)
            share = (by_row[..., : self.components] + self._of_components(by_row, y)).softmax(-1) * weight
            total = share.sum(1).clamp_min(weighted.FLOOR)
            mean = (share * y.unsqueeze(-1)).sum(1) / total
            variance = (share * (y.unsqueeze(-1) - mean.unsqueeze(1)).square()).sum(1) / total
            width = torch.maximum(variance.sqrt(), least)
            eta = torch.cat([total.log(), mean, width.log()], -1)
        eta[:, : self.components] -= eta[:, : self.components].mean(-1, keepdim=True)
        return eta, torch.cat([torch.ones_like(mean), width, torch.ones_like(mean)], -1)


class RoundedMixture(distributions.MixtureSameFamily):
    """A mixture whose draws are rounded to multiples of a step."""

    def __init__(self, mixing: Any, parts: Any, likelihood: NormalMixture, eta: Tensor) -> None:
        super().__init__(mixing, parts, validate_args=False)
        self.likelihood, self.eta = likelihood, eta

    def expand(self, batch_shape: Any, _instance: Any = None) -> RoundedMixture:
        """The same distribution for a larger batch."""
        wide = self.eta.expand(*batch_shape, self.eta.shape[-1])
        return self.likelihood.distribution(wide)  # type: ignore[return-value]

    def log_prob(self, value: Tensor) -> Tensor:
        return self.likelihood.log_prob(self.eta, value)

    def cdf(self, value: Tensor) -> Tensor:
        step = self.likelihood.step
        assert step is not None
        return super().cdf(torch.floor(value / step + 1e-6) * step + 0.5 * step)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        step = self.likelihood.step
        assert step is not None
        return torch.round(super().sample(torch.Size(sample_shape)) / step) * step


def _quantiles(y: Tensor, fraction: Tensor, levels: Tensor) -> Tensor:
    """The values of y (n,) below which these fractions of the weight lie: (k, levels)."""
    ordered, order = y.sort()
    below = fraction[order].cumsum(0).T.contiguous()  # (k, n)
    place = torch.searchsorted(below, levels.expand(len(below), -1).contiguous() - weighted.FLOOR)
    return ordered[place.clamp_max(len(y) - 1)]
