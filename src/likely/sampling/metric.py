"""What methods that follow the gradient learn in warm-up, from all chains together: a step ε and the units it is in.

    LLᵀ ≈ Cov(x) from windows that double,    ε by dual averaging towards the acceptance asked for

A fixed ε is in the units of the positions themselves: then L stays the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..core.errors import DataError
from .adaptation import Moments, is_window_end
from .density import LogDensity
from .dual_averaging import BOLD, DualAveraging
from .gradient import first_value_and_gradient
from .leapfrog import Point, back, first_step
from .sampler import State

__all__ = ["GradientState", "Metric", "moved", "positive_or_none", "start", "thrown"]

DENSE = 200
"""Beyond this many coordinates a full covariance costs more than it brings."""


@dataclass(frozen=True)
class GradientState(State):
    """A state that also knows the gradient of the log-density at its position."""

    gradient: Any = None


class Metric(NamedTuple):
    """ε (by dual averaging, or fixed), the root L, and the moments of the present window."""

    step: DualAveraging
    factor: Tensor
    moments: Moments
    fixed: float | None = None
    settled: bool = False

    @property
    def epsilon(self) -> float:
        """ε of the next move."""
        return self.typical if self.settled or self.fixed is not None else self.step.step

    @property
    def typical(self) -> float:
        """ε as far as it has settled."""
        return self.step.settled if self.fixed is None else self.fixed

    def after(self, rows: Tensor, acceptance: Tensor, target: float, index: int, total: int) -> Metric:
        """Better by what step `index` of `total` showed: where the chains are now and how they were accepted."""
        last = index == total - 1
        if self.fixed is not None:
            return self._replace(settled=last)
        step = self.step.after(float(acceptance.mean()), target)
        metric = self._replace(step=step, moments=self.moments.add(rows), settled=last)
        if not is_window_end(index, total):
            return metric
        factor = metric.moments.factor()
        metric = metric._replace(moments=_no_moments(rows))
        if factor is None:
            return metric
        # the units of ε change with L: now 1 is a standard deviation of the target
        fresh = DualAveraging.start(min(1.0, 1.5 * rows.shape[1] ** -0.25), self.step.pace)
        return metric._replace(factor=factor, step=fresh)


def start(
    name: str, position: Tensor, log_prob: LogDensity, step_size: float | None, pace: tuple[float, float] = BOLD
) -> GradientState:
    """The state before the first step of the method called `name`, with a `Metric` as its tuning."""
    if not position.is_floating_point():
        raise DataError(f"{name} needs positions that are real numbers; for integers use Gibbs(supports=…).")
    value, gradient = first_value_and_gradient(log_prob, position)
    rows = position.reshape(len(position), -1)
    step = step_size or first_step(log_prob, position, value, gradient)
    metric = Metric(DualAveraging.start(step, pace), rows.new_ones(rows.shape[1]), _no_moments(rows), step_size)
    return GradientState(position, value, metric, gradient)


def thrown(state: GradientState, factor: Tensor, generator: torch.Generator) -> Point:
    """The chains' particles, each thrown with a speed v ~ Normal(0, I)."""
    x = state.position
    v = torch.randn((len(x), len(factor)), generator=generator, dtype=x.dtype, device=x.device)
    return Point(x, v, state.log_prob, state.gradient, back(state.gradient, factor))


def moved(state: GradientState, point: Point, accepted: Tensor) -> GradientState:
    """The state of chains that went to `point` where that was accepted, and stayed where not."""
    wide = accepted.reshape(-1, *[1] * (point.x.ndim - 1))
    return GradientState(
        torch.where(wide, point.x, state.position),
        torch.where(accepted, point.value, state.log_prob),
        state.tuning,
        torch.where(wide, point.gradient, state.gradient),
    )


def positive_or_none(value: float | None) -> bool:
    """Whether a step or a length may be what was given."""
    return value is None or 0 < value < math.inf


def _no_moments(rows: Tensor) -> Moments:
    return Moments.none(rows, rows.shape[1] <= DENSE)
