"""Dual averaging: a step size whose acceptance is what was asked for, learned in warm-up from all chains together.

log ε ← μ − √t/γ · 1/(t + t₀) Σ (target − acceptance),   and its average with weights t^(−κ) for the draws
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["DualAveraging"]

T0, KAPPA = 10.0, 0.75
BOLD, CALM = (0.05, 10.0), (0.2, 1.0)
"""γ, and how much larger than the first step the anchor is."""


class DualAveraging(NamedTuple):
    """The state: the anchor μ, steps since it was set, the averaged error, log ε now and on average; γ and exp μ/ε₀.

    A small γ finds a step far from the first one soon, and follows the noise of the acceptance: ε swings about what it
    seeks, and as the acceptance is concave in log ε there, the middle of the swing is accepted more often than asked.
    Where a move is one step, whose acceptance is noisy, `calm` keeps near: a larger γ, and the first step as anchor.
    """

    anchor: float
    seen: int
    error: float
    log_step: float
    average: float
    pace: tuple[float, float] = BOLD

    @staticmethod
    def start(step: float, pace: tuple[float, float] = BOLD) -> DualAveraging:
        """Anchored above this step, so that larger ones are tried first; in a calm pace, at this step.

        >>> round(DualAveraging.start(0.1).step, 6)
        0.1
        """
        return DualAveraging(math.log(pace[1] * step), 0, 0.0, math.log(step), math.log(step), pace)

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
        log_step = self.anchor - math.sqrt(count) / self.pace[0] * error
        log_step = min(max(log_step, -30.0), 10.0)
        rate = count**-KAPPA
        average = rate * log_step + (1 - rate) * self.average
        return self._replace(seen=count, error=error, log_step=log_step, average=average)
