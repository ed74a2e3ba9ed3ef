"""Rejection sampling: draws of a proposal, kept with the probability that makes them draws of the target.

    x ~ q,   keep x with probability p(x) / (k·q(x)),       p(x) ≤ k·q(x) for all x

The fraction Z/k of all proposals is kept, with Z = ∫p; 1/k for a normalised target.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
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
    shown,
)

__all__ = ["RejectionDraws", "rejection"]

_SLACK = 1e-5  # log-densities in float32 are rounded by as much; it changes no draw that anyone could notice
_PILOT = 10_000


@dataclass(frozen=True)
class RejectionDraws:
    """What rejection sampling kept.

    `acceptance` is the measured fraction of proposals kept, `log_k` the bound, `estimated` whether the bound was
    searched for rather than given (then the draws are exact if the search found the top), `proposed` the count of
    proposals.
    """

    draws: Tensor
    acceptance: Estimate
    log_k: float
    estimated: bool
    proposed: int

    @property
    def log_normaliser(self) -> Estimate:
        """log Z = log k + log acceptance of a target that is known up to a constant."""
        return Estimate(self.log_k + math.log(self.acceptance), self.acceptance.standard_error / self.acceptance)

    def __repr__(self) -> str:
        source = "estimated" if self.estimated else "given"
        return f"{len(self.draws)} draws, acceptance {self.acceptance}, log k {self.log_k:.4f} ({source})"


def rejection(
    log_target: LogDensity | Distribution,
    proposal: Distribution,
    n: int,
    log_k: float | None = None,
    random_state: Any = None,
    max_proposals: int | None = None,
) -> RejectionDraws:
    """n independent, exact draws of a density known up to a constant.

    `log_k` bounds log p − log q everywhere. Without it the bound is searched for: the largest of many draws, climbed
    on from there. A proposal that breaks a given bound is an error that says where. `max_proposals` is where to give
    up: after a thousand for each draw asked for, or ten million if that is more.

    >>> from torch.distributions import Beta, Uniform
    >>> kept = rejection(Beta(2.0, 2.0), Uniform(0.0, 1.0), 5000, log_k=math.log(1.5), random_state=0)
    >>> abs(kept.acceptance - 1 / 1.5) < 0.02
    True
    """
    count, generator = integer(n, "n", 1), as_generator(random_state)
    target, own = as_log_density(log_target, "log_target"), as_log_density(_one(proposal), "proposal")

    def log_ratio(x: Tensor) -> Tensor:
        return target(x) - own(x)

    bound = first = _search(log_ratio, proposal, generator) if log_k is None else float(log_k)
    if not math.isfinite(bound):
        raise DataError(f"log_k must be a finite number, or None to search for it; found {log_k!r}.")
    limit = max_proposals or max(10_000_000, 1000 * count)
    while isinstance(kept := _attempt(log_ratio, proposal, count, bound, generator, limit), Tensor):
        if log_k is not None:
            raise DataError(
                f"log_k={bound:g} is not a bound: at {shown(kept)} log_target − log proposal is "
                f"{float(log_ratio(kept.unsqueeze(0))):.6g}. Give a larger log_k, or None to search for it."
            )
        bound = _climb(log_ratio, kept)  # what was kept under too low a bound is thrown away
    if bound > first:
        warnings.warn(
            f"The bound found first, log_k={first:.4g}, was broken by a later proposal and raised to {bound:.4g}; the "
            "draws are exact only if that is the top of log_target − log proposal. Give log_k if it is known.",
            ApproximationWarning,
            stacklevel=2,
        )
    draws, rate, proposed = kept
    acceptance = Estimate(rate, math.sqrt(rate * (1 - rate) / proposed))
    return RejectionDraws(draws[:count], acceptance, bound, log_k is None, proposed)


def _attempt(
    log_ratio: LogDensity, proposal: Distribution, count: int, bound: float, generator: torch.Generator, limit: int
) -> tuple[Tensor, float, int] | Tensor:
    """What was kept of whole batches, its fraction, and the number of proposals; or a point that breaks the bound."""
    kept: list[Tensor] = []
    accepted = proposed = 0
    batch = min(max(count, 1000), 100_000)
    while accepted < count:
        if proposed >= limit:
            raise DataError(
                f"Only {accepted} of {proposed} proposals were kept at log_k={bound:.4g}, and {count} are asked for; "
                "choose a proposal closer to the target, a smaller log_k, or raise max_proposals."
            )
        x = as_real(draw(proposal, generator, batch))
        with torch.no_grad():
            ratio = log_ratio(x)
        top = int(ratio.argmax())
        if float(ratio[top]) > bound + _SLACK:
            return x[top]
        keep = torch.rand(batch, generator=generator, dtype=torch.float64).log() < ratio - bound
        kept.append(x[keep])
        accepted, proposed = accepted + int(keep.sum()), proposed + batch
    return torch.cat(kept), accepted / proposed, proposed


def _one(proposal: Any) -> Distribution:
    if not isinstance(proposal, Distribution):
        raise DataError(f"proposal must be a torch distribution; found {type(proposal).__name__}.")
    return proposal


def _search(log_ratio: LogDensity, proposal: Distribution, generator: torch.Generator) -> float:
    """The top of log p − log q: the best few of many draws, climbed on from there."""
    x = as_real(draw(proposal, generator, _PILOT))
    with torch.no_grad():
        ratio = log_ratio(x)
    best = float(ratio.max())
    if best == -math.inf:
        raise DataError(f"log_target is −inf at all of {_PILOT} draws of the proposal; the proposal misses the target.")
    discrete = getattr(proposal.support, "is_discrete", False)
    starts = [] if discrete else ratio.topk(3).indices.tolist()
    highest = max([best, *(_climb(log_ratio, x[start]) for start in starts)])
    if highest > best + 20:
        raise DataError(
            f"log_target − log proposal seems to grow without bound (beyond {highest:.4g}); choose a proposal with "
            "heavier tails, or give log_k."
        )
    return highest


def _climb(log_ratio: LogDensity, start: Tensor) -> float:
    """The top near a point, without gradients: targets may have edges. Never less than where it starts."""

    def fall(point: np.ndarray) -> float:
        row = torch.as_tensor(point).reshape(1, *start.shape).to(start.dtype)
        with torch.no_grad():
            value = -float(log_ratio(row))
        return value if math.isfinite(value) else math.inf

    size = start.numel()
    first = start.double().flatten().numpy()
    options = {"xatol": 1e-8, "fatol": 1e-12, "maxfev": 400 * size}
    minimum = minimize(fall, first, method="Nelder-Mead", options=options)
    return max(-float(minimum.fun), -fall(first))
