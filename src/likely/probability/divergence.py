"""Entropy, cross-entropy, and the Kullback-Leibler and Jensen-Shannon divergences, in nats.

    H(p) = −E_p log p              KL(p‖q) = E_p log(p/q) ≥ 0
    H(p, q) = −E_p log q           JS(p, q) = ½ KL(p‖m) + ½ KL(q‖m) ≤ log 2,   m = ½(p + q)

Each takes torch distributions, or vectors and tables of probabilities. Finite sums and torch's closed forms are exact;
everything else is an average over draws, and the answer carries its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, kl_divergence

from ..core.errors import DataError
from ..core.random import seed_of, spread
from .density import (
    Probabilities,
    as_distribution,
    draw,
    is_discrete,
    log_prob,
    outcomes,
)
from .estimate import Estimate

__all__ = ["cross_entropy", "entropy", "js", "kl"]


def kl(
    p: Distribution | Probabilities,
    q: Distribution | Probabilities,
    *,
    draws: int = 10_000,
    random_state: Any = None,
) -> Estimate:
    """KL(p‖q) = E_p log(p/q): the nats lost when q is used in place of p. ∞ where q has no mass and p has.

    >>> from torch.distributions import Normal
    >>> kl([0.5, 0.5], [0.5, 0.5]), kl([0.5, 0.5], [1.0, 0.0])
    (0.0, inf)
    >>> kl(Normal(1.0, 1.0), Normal(0.0, 1.0))
    0.5
    >>> kl(Normal(1.0, 1.0), Normal(0.0, 1.0)).standard_error  # exact
    0.0
    """
    p, q = _pair(p, q)
    if is_discrete(p) != is_discrete(q):
        return Estimate(math.inf)
    closed = _closed_kl(p, q)
    if closed is not None:
        return Estimate(closed)
    estimate = _expectation(p, lambda values: log_prob(p, values) - log_prob(q, values), draws, random_state)
    return estimate if estimate.standard_error else Estimate(max(0.0, estimate))  # a sum may round to −1e-17


def js(
    p: Distribution | Probabilities,
    q: Distribution | Probabilities,
    *,
    draws: int = 10_000,
    random_state: Any = None,
) -> Estimate:
    """JS(p, q) = ½ KL(p‖m) + ½ KL(q‖m) with m = ½(p + q): symmetric, and log 2 at most, where nothing is shared.

    >>> round(js([1.0, 0.0], [0.0, 1.0]), 4), kl([1.0, 0.0], [0.0, 1.0])
    (0.6931, inf)
    """
    p, q = _pair(p, q)
    if is_discrete(p) != is_discrete(q):
        return Estimate(math.log(2))

    def log_ratio_to_mixture(values: Tensor, own: Distribution, other: Distribution) -> np.ndarray:
        log_own = log_prob(own, values)
        return log_own - np.logaddexp(log_own, log_prob(other, values)) + math.log(2)

    seeds = spread(seed_of(random_state), 2)
    first = _expectation(p, lambda values: log_ratio_to_mixture(values, p, q), draws, seeds[0])
    second = _expectation(q, lambda values: log_ratio_to_mixture(values, q, p), draws, seeds[1])
    error = 0.5 * math.hypot(first.standard_error, second.standard_error)
    return Estimate(min(max(0.0, 0.5 * (first + second)), math.log(2)), error)


def entropy(p: Distribution | Probabilities, *, draws: int = 10_000, random_state: Any = None) -> Estimate:
    """H(p) = −E_p log p: what is unknown before a draw of p is seen (differential entropy for densities).

    >>> round(entropy([0.25, 0.25, 0.25, 0.25]) / math.log(2), 6)  # two bits
    2.0
    """
    p = as_distribution(p, "p")
    closed = _closed_entropy(p)
    if closed is not None:
        return Estimate(closed)
    return _expectation(p, lambda values: -log_prob(p, values), draws, random_state)


def cross_entropy(
    p: Distribution | Probabilities,
    q: Distribution | Probabilities,
    *,
    draws: int = 10_000,
    random_state: Any = None,
) -> Estimate:
    """H(p, q) = −E_p log q = H(p) + KL(p‖q): the mean nats it takes to code draws of p with a code made for q.

    >>> round(cross_entropy([1.0, 0.0], [0.25, 0.75]), 4), round(-math.log(0.25), 4)
    (1.3863, 1.3863)
    """
    p, q = _pair(p, q)
    if is_discrete(p) != is_discrete(q):
        return Estimate(math.inf)
    own, extra = _closed_entropy(p), _closed_kl(p, q)
    if own is not None and extra is not None:
        return Estimate(own + extra)
    return _expectation(p, lambda values: -log_prob(q, values), draws, random_state)


def _pair(p: Any, q: Any) -> tuple[Distribution, Distribution]:
    """Two distributions of the same thing."""
    if not isinstance(p, Distribution) and not isinstance(q, Distribution) and np.shape(p) != np.shape(q):
        raise DataError(f"p and q must be tables of one shape; found {np.shape(p)} and {np.shape(q)}.")
    first, second = as_distribution(p, "p"), as_distribution(q, "q")
    if first.event_shape != second.event_shape:
        raise DataError(
            f"p and q must be distributions of the same thing; one draw of p has shape {tuple(first.event_shape)}, "
            f"of q {tuple(second.event_shape)}."
        )
    return first, second


def _expectation(p: Distribution, function: Callable[[Tensor], np.ndarray], draws: int, random_state: Any) -> Estimate:
    """E_p f: a sum over the outcomes if they can be listed, the mean over draws otherwise."""
    finite = outcomes(p)
    if finite is None:
        return Estimate.mean(function(draw(p, draws, random_state)))
    mass = np.exp(finite.log_probs)
    possible = mass > 0
    return Estimate(float(mass[possible] @ function(finite.values[torch.from_numpy(possible)])))


def _closed_kl(p: Distribution, q: Distribution) -> float | None:
    """torch's closed form, if it has one; sums over listed outcomes are as exact and keep their −∞."""
    if outcomes(p) is not None:
        return None
    try:
        with torch.no_grad():
            return float(kl_divergence(p, q))
    except NotImplementedError:
        return None


def _closed_entropy(p: Distribution) -> float | None:
    if outcomes(p) is not None:
        return None
    try:
        with torch.no_grad():
            return float(p.entropy())
    except NotImplementedError:
        return None
