"""Langevin dynamics: a step up the gradient of log p and a step of noise, which together have p as their equilibrium.

    x′ = x + (ε²/2) LLᵀ∇log p(x) + ε L ξ,    ξ ~ Normal(0, I)

Adjusted (MALA), x′ is accepted as Metropolis and Hastings ask, and p is exactly invariant: it is Hamiltonian Monte
Carlo with trajectories of one leapfrog step. Unadjusted, every step is taken and the equilibrium is p up to O(ε²).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from ..core.spec import require
from .density import LogDensity
from .dual_averaging import CALM
from .leapfrog import gained, leapfrog
from .metric import (
    GradientState,
    Metric,
    moved,
    positive_or_none,
    start,
    thrown,
)
from .sampler import Info, Sampler, State

__all__ = ["Langevin"]

ADJUSTED, UNADJUSTED = 0.574, 0.99
"""The acceptance towards which ε is tuned: the best for many coordinates, and one at which the bias is small."""


@dataclass(frozen=True, kw_only=True)
class Drift(Info):
    """A step, and the probability with which a Metropolis step would accept it."""

    metropolis: Tensor


class Langevin(Sampler):
    """Langevin(): one gradient per move; `adjusted=False` takes every step, and its draws are biased.

    The unadjusted chain forgets its bias only as ε → 0: for a normal target the variance is too large by a factor of
    1/(1 − ε²/4), ε in standard deviations. Without a `step_size` warm-up chooses a small one (a Metropolis step would
    accept 99 of 100 moves). Use it where exactness costs too much, and say that it was used. `step_size` fixes ε in
    the units of the positions.

    >>> from likely.sampling import sample
    >>> chains = sample(torch.distributions.Gamma(3.0, 1.0), 1.0, Langevin(), chains=16, random_state=0)
    >>> bool((chains.mean - 3).abs() < 0.2)
    True
    """

    step_size: float | None = None
    adjusted: bool = True

    unbounded: ClassVar[bool] = True

    def validate(self) -> None:
        require(positive_or_none(self.step_size), self, "step_size", "None or a positive number")

    def init(self, position: Tensor, log_prob: LogDensity) -> GradientState:
        return start("Langevin", position, log_prob, self.step_size, CALM)

    def step(self, state: State, log_prob: LogDensity, generator: torch.Generator) -> tuple[State, Info]:
        assert isinstance(state, GradientState)
        metric: Metric = state.tuning
        first = thrown(state, metric.factor, generator)
        point = leapfrog(log_prob, first, metric.epsilon, metric.factor)
        gain, diverged = gained(first.log_joint, point)
        metropolis = gain.clamp_max(0.0).exp()
        if self.adjusted:
            uniform = torch.rand(len(gain), generator=generator, dtype=gain.dtype, device=gain.device)
            accepted, acceptance = uniform < metropolis, metropolis
        else:
            accepted = ~diverged  # a step to where there is no mass is not taken even so
            acceptance = accepted.to(gain.dtype)
        stats = {"energy": -first.log_joint, "step_size": torch.full_like(gain, metric.epsilon)}
        if not self.adjusted:  # an adjusted step that goes astray is refused, which is all there is to say
            stats["diverging"] = diverged
        return moved(state, point, accepted), Drift(acceptance, stats, metropolis=metropolis)

    def adapt(self, state: State, info: Info, index: int, total: int) -> State:
        assert isinstance(info, Drift)
        rows = state.position.reshape(len(state.position), -1)
        target = ADJUSTED if self.adjusted else UNADJUSTED
        return replace(state, tuning=state.tuning.after(rows, info.metropolis, target, index, total))
