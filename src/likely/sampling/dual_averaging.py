"""Dual averaging: a step size whose acceptance is what was asked for, learned in warm-up from all chains together.

log ε ← μ − √t/γ · 1/(t + t₀) Σ (target − acceptance),   and its average with weights t^(−κ) for the draws
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["DualAveraging"]

GAMMA, T0, KAPPA = 0.05, 10.0, 0.75


class DualAveraging(NamedTuple):
    """The state: the anchor μ, steps since it was set, the averaged error, log ε now and on average."""

    anchor: float
    seen: int
    error: float
    log_step: float
    average: float

    @staticmethod
    def start(step: float) -> DualAveraging:
        """Anchored a little above this step, so that larger ones are tried first.

        >>> round(DualAveraging.start(0.1).step, 6)
        0.1
        """
        return DualAveraging(math.log(10 * step), 0, 0.0, math.log(step), math.log(step))

    @property
    def step(self) -> float:
        """ε to try now."""
        return math.exp(self.log_step)

    @property
    def settled(self) -> float:
        """ε for the draws: the average of those tried."""
        return math.exp(self.average)

    def after(self, acceptance: float, target: float) -> DualAveraging:
        """The state after a step that was accepted with this probability, on average over the chains."""
        count = self.seen + 1
        weight = 1 / (count + T0)
        error = (1 - weight) * self.error + weight * (target - acceptance)
        log_step = self.anchor - math.sqrt(count) / GAMMA * error
        log_step = min(max(log_step, -30.0), 10.0)
        rate = count**-KAPPA
        return DualAveraging(self.anchor, count, error, log_step, rate * log_step + (1 - rate) * self.average)
