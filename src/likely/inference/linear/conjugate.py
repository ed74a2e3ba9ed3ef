"""The coin: a probability θ of success with a Beta prior, whose posterior, evidence and predictions are closed forms.

θ ~ Beta(a, b),   k successes in n trials:   θ | k ~ Beta(a + k, b + n − k)

log evidence = log B(a + k, b + n − k) − log B(a, b)                          (of the sequence of outcomes)

p(j of m further trials | k) = C(m, j) · B(a′ + j, b′ + m − j) / B(a′, b′)      with a′ = a + k, b′ = b + n − k
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import betaln
from torch.distributions import Beta, Categorical

from ...core.errors import DataError, SpecError

__all__ = ["BetaBinomial", "beta_binomial"]


@dataclass(frozen=True)
class BetaBinomial:
    """What is known of θ after some trials: its posterior, and the log-probability of what was seen."""

    posterior: Beta
    log_evidence: float

    def predictive(self, n: int) -> Categorical:
        """The number of successes in n further trials, over 0, 1, …, n.

        >>> beta_binomial(0, 0).predictive(4).probs.tolist()  # every number is as probable, before any trial
        [0.2, 0.2, 0.2, 0.2, 0.2]
        """
        _require_count("n", n)
        a, b = float(self.posterior.concentration1), float(self.posterior.concentration0)
        hits = np.arange(n + 1.0)
        log_choose = -math.log(n + 1) - betaln(hits + 1, n - hits + 1)
        return Categorical(logits=torch.from_numpy(log_choose + betaln(a + hits, b + n - hits) - betaln(a, b)))


def beta_binomial(successes: int, trials: int, a: float = 1.0, b: float = 1.0) -> BetaBinomial:
    """The posterior of the probability of success under the prior Beta(a, b); a = b = 1 is uniform.

    >>> coin = beta_binomial(successes=7, trials=10)
    >>> coin.posterior.concentration1.item(), coin.posterior.concentration0.item()
    (8.0, 4.0)
    >>> round(coin.log_evidence, 4)  # 7! 3! / 11!
    -7.1854
    >>> round(coin.predictive(1).probs[1].item(), 4)  # Laplace's rule: (7 + 1) / (10 + 2)
    0.6667
    """
    _require_count("trials", trials)
    _require_count("successes", successes)
    if successes > trials:
        raise DataError(f"successes must be at most the number of trials; found {successes} in {trials}.")
    for name, value in (("a", a), ("b", b)):
        if not (isinstance(value, int | float) and 0 < value < math.inf):
            raise SpecError(f"{name} must be a positive number; found {value!r}.")
    hit, miss = a + successes, b + trials - successes
    posterior = Beta(torch.tensor(hit, dtype=torch.float64), torch.tensor(miss, dtype=torch.float64))
    return BetaBinomial(posterior, float(betaln(hit, miss) - betaln(a, b)))


def _require_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise DataError(f"{name} must be an integer, 0 or more; found {value!r}.")
