"""Metropolis-Hastings: propose a move, and accept it as often as keeps the target invariant.

    x′ ~ q(·|x),    accept with probability min(1, p(x′) q(x|x′) / (p(x) q(x′|x)))

The random walk proposes x′ = x + s·L·ε with ε ~ Normal(0, I); q is symmetric and cancels. Warm-up learns the step s
from the acceptance of all chains, and L from their spread, LLᵀ ≈ Cov(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import DataError
from ..core.spec import require
from .adaptation import Moments, is_window_end
from .density import LogDensity, draw, log_prob_of, shown
from .sampler import Info, Sampler, State

__all__ = ["MetropolisHastings"]

_DENSE = 100  # beyond this many coordinates a full covariance costs more than it brings


class Walk(NamedTuple):
    """How the random walk steps: log s and its average, the root L of the covariance, the moments of this window."""

    log_step: Tensor
    average: Tensor
    factor: Tensor
    moments: Moments
    since: int  # steps since the window began


class MetropolisHastings(Sampler):
    """MetropolisHastings(): a random walk for any log-density; it needs no gradient.

    `step_size` fixes s, with L the identity and nothing tuned; without it warm-up tunes both, to `acceptance`
    (by default 0.44 for one coordinate and 0.234 for many). `proposal` is a walk of your own, a function from
    positions (chains, *event) to the distribution of the next ones; it may be asymmetric, the ratio of q is computed.

    >>> from likely.sampling import sample
    >>> chains = sample(torch.distributions.Gamma(3.0, 1.0), 1.0, MetropolisHastings(), random_state=0)
    >>> bool((chains.mean - 3).abs() < 0.3)
    True
    """

    step_size: float | None = None
    acceptance: float | None = None
    proposal: Callable[[Tensor], Distribution] | None = None

    def validate(self) -> None:
        positive = self.step_size is None or 0 < self.step_size < math.inf
        require(positive, self, "step_size", "None or a positive number")
        require(self.acceptance is None or 0 < self.acceptance < 1, self, "acceptance", "None or between 0 and 1")
        require(self.proposal is None or callable(self.proposal), self, "proposal", "None or a function of positions")
        fixed = self.step_size is not None or self.acceptance is not None
        require(self.proposal is None or not fixed, self, "proposal", "None if step_size or acceptance is given")

    def init(self, position: Tensor, log_prob: LogDensity) -> State:
        if self.proposal is not None:
            return State(position, log_prob(position))
        if not position.is_floating_point():
            raise DataError(
                "A random walk needs positions that are real numbers; for integers give MetropolisHastings a "
                "proposal, or use Gibbs(supports=…)."
            )
        rows = position.flatten(1) if position.ndim > 1 else position[:, None]
        size = rows.shape[1]
        step = 2.38 / math.sqrt(size) if self.step_size is None else self.step_size
        log_step = torch.tensor(math.log(step), dtype=rows.dtype, device=rows.device)
        walk = Walk(log_step, log_step, rows.new_ones(size), Moments.none(rows, size <= _DENSE), 0)
        return State(position, log_prob(position), walk)

    def step(self, state: State, log_prob: LogDensity, generator: torch.Generator) -> tuple[State, Info]:
        moved, correction = self._walk(state, generator) if self.proposal is None else self._proposed(state, generator)
        new = log_prob(moved)
        acceptance = (new - state.log_prob + correction).clamp_max(0.0).exp()
        uniform = torch.rand(len(acceptance), generator=generator, dtype=torch.float64, device=acceptance.device)
        accepted = uniform < acceptance
        wide = accepted.reshape(-1, *[1] * (moved.ndim - 1))
        position = torch.where(wide, moved, state.position)
        return replace(state, position=position, log_prob=torch.where(accepted, new, state.log_prob)), Info(acceptance)

    def adapt(self, state: State, info: Info, index: int, total: int) -> State:
        if self.proposal is not None or self.step_size is not None:
            return state
        walk: Walk = state.tuning
        rows = state.position.reshape(len(state.position), -1)
        size = rows.shape[1]
        target = self.acceptance or (0.44 if size == 1 else 0.234)
        # Robbins-Monro; the gain makes a step that is never accepted fall by a constant factor at first
        gain = (walk.since + 1) ** -0.6 / (target * (1 - target))
        log_step = walk.log_step + gain * (info.acceptance.mean() - target)
        average = torch.lerp(walk.average, log_step, (walk.since + 1) ** -0.75)
        if index == total - 1:
            return replace(state, tuning=walk._replace(log_step=average, average=average))
        moments = walk.moments.add(rows)
        if not is_window_end(index, total):
            return replace(state, tuning=Walk(log_step, average, walk.factor, moments, walk.since + 1))
        factor = moments.factor()
        empty = Moments.none(rows, size <= _DENSE)
        if factor is None:
            return replace(state, tuning=Walk(log_step, average, walk.factor, empty, walk.since + 1))
        best = torch.full_like(log_step, math.log(2.38 / math.sqrt(size)))  # for a normal target of covariance LLᵀ
        return replace(state, tuning=Walk(best, best, factor, empty, 0))

    def _walk(self, state: State, generator: torch.Generator) -> tuple[Tensor, float]:
        x, walk = state.position, state.tuning
        noise = torch.randn((len(x), len(walk.factor)), generator=generator, dtype=x.dtype, device=x.device)
        along = noise @ walk.factor.T if walk.factor.ndim == 2 else noise * walk.factor
        return x + (walk.log_step.exp() * along).reshape(x.shape), 0.0

    def _proposed(self, state: State, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A move of the person's own proposal, and log q(x|x′) − log q(x′|x)."""
        x = state.position
        forward = self._propose(x)
        moved = draw(forward, generator).to(x.dtype)
        if moved.shape != x.shape:
            raise DataError(
                f"proposal gave draws of shape {tuple(moved.shape)} for positions of shape {tuple(x.shape)}; it must "
                "be a distribution of one new position for each chain."
            )
        there, back = _log_prob(forward, moved), _log_prob(self._propose(moved), x)
        if bool((there.isnan() | back.isnan() | ~there.isfinite()).any()):
            row = int((there.isnan() | back.isnan() | ~there.isfinite()).nonzero()[0])
            raise DataError(
                f"proposal gives the move from {shown(x[row])} to {shown(moved[row])} the log-density "
                f"{there[row].item():g} and the way back {back[row].item():g}."
            )
        return moved, back - there

    def _propose(self, x: Tensor) -> Distribution:
        distribution = self.proposal(x)  # type: ignore[misc]
        if not isinstance(distribution, Distribution):
            raise DataError(f"proposal must give a torch distribution; it gave {type(distribution).__name__}.")
        return distribution


def _log_prob(distribution: Distribution, x: Tensor) -> Tensor:
    """log q of each chain; independent coordinates are summed."""
    return log_prob_of(distribution, x).reshape(len(x), -1).sum(1)
