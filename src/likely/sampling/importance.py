"""Importance sampling, self-normalised: draws of a proposal, weighted to speak for the target.

wᵢ ∝ p(xᵢ)/q(xᵢ),  Σw = 1        E_p f ≈ Σ wᵢ f(xᵢ)        log Z ≈ log mean p/q        ESS = 1/Σw²
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import ApproximationWarning, DataError
from ..probability import Estimate
from .density import (
    LogDensity,
    as_generator,
    as_log_density,
    as_real,
    draw,
    integer,
)

__all__ = ["WeightedDraws", "importance"]


@dataclass(frozen=True)
class WeightedDraws:
    """Draws (n, *event) with weights that sum to 1, and the estimated log ∫p."""

    draws: Tensor
    weights: Tensor
    log_normaliser: Estimate

    @property
    def ess(self) -> float:
        """The effective sample size 1/Σw²: between 1 and n."""
        return float(1 / self.weights.square().sum())

    def mean(self, f: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """E_p f(x), of the draws themselves without a function; f takes the rows (n, *event) and gives (n, …)."""
        return torch.tensordot(self.weights, self._values(f), dims=1)

    def standard_error(self, f: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """That of `mean`, by the delta method: √Σ w²(f − mean)²."""
        gap = (self._values(f) - self.mean(f)).square()
        return torch.tensordot(self.weights.square(), gap, dims=1).sqrt()

    def resample(self, n: int | None = None, random_state: Any = None) -> Tensor:
        """n draws without weights (as many as there are by default), each picked by its weight, with replacement."""
        count = len(self.draws) if n is None else integer(n, "n", 1)
        return self.draws[
            torch.multinomial(self.weights, count, replacement=True, generator=as_generator(random_state))
        ]

    def _values(self, f: Callable[[Tensor], Tensor] | None) -> Tensor:
        values = self.draws if f is None else f(self.draws)
        if values.shape[:1] != self.weights.shape:
            raise DataError(
                f"f must give one value for each of the {len(self.draws)} rows; it gave {tuple(values.shape)}."
            )
        return values.double()

    def __repr__(self) -> str:
        return f"{len(self.draws)} weighted draws, ESS {self.ess:.1f}, log Z {self.log_normaliser}"


def importance(
    log_target: LogDensity | Distribution, proposal: Distribution, n: int, random_state: Any = None
) -> WeightedDraws:
    """n weighted draws for a density known up to a constant. The proposal must have mass wherever the target has.

    >>> from torch.distributions import Normal, StudentT
    >>> drawn = importance(lambda x: -0.5 * (x - 1) ** 2, StudentT(3.0), 20_000, random_state=0)
    >>> bool((drawn.mean() - 1).abs() < 0.03), abs(drawn.log_normaliser - 0.5 * math.log(2 * math.pi)) < 0.03
    (True, True)
    """
    count = integer(n, "n", 2)
    if not isinstance(proposal, Distribution):
        raise DataError(f"proposal must be a torch distribution; found {type(proposal).__name__}.")
    target, own = as_log_density(log_target, "log_target"), as_log_density(proposal, "proposal")
    x = as_real(draw(proposal, as_generator(random_state), count))
    with torch.no_grad():
        log_weights = target(x) - own(x)
    total = torch.logsumexp(log_weights, 0)
    if not bool(total > -torch.inf):
        raise DataError(f"log_target is −inf at all {count} draws of the proposal; the proposal misses the target.")
    weights = (log_weights - total).exp()
    relative = float((count * weights).std()) / math.sqrt(count)
    drawn = WeightedDraws(x, weights, Estimate(float(total) - math.log(count), relative))
    if drawn.ess < max(10.0, 0.01 * count):
        warnings.warn(
            f"The {count} draws are worth {drawn.ess:.1f} (the effective sample size): a few weights hold nearly all. "
            "Choose a proposal closer to the target and with heavier tails, or use sample().",
            ApproximationWarning,
            stacklevel=2,
        )
    return drawn
