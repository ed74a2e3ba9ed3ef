"""Hamiltonian Monte Carlo: follow the gradient of log p with momentum, then accept by the change of energy.

    v ~ Normal(0, I);   (x′, v′) = τ/ε leapfrog steps from (x, v);   H = −log p(x) + ½‖v‖²
    accept with probability min(1, exp(H(x, v) − H(x′, v′)))

Warm-up learns, from all chains together, the metric, ε, and the length τ of trajectories, by ascending the rate at
which squared distances from the mean change (the ChEES criterion). Lengths are spread evenly over (0, τ], so that no
period of the target is met again and again. All chains take the same number of steps: a move is one program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from ..core.spec import require
from .density import LogDensity
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

__all__ = ["HMC"]

QUARTER = 0.5 * math.pi
"""τ at which the criterion is greatest for a normal target of unit covariance: a quarter of its period."""
WIDER = 2.0
"""The draws use twice that: with lengths spread over (0, π] those of a normal target are uncorrelated.

A time uτ takes ⌈uτ/ε⌉ steps, on average half a step more than it asks for. The criterion is of the times as they are,
so that τ is learned shorter where steps are long: with ε = 1, in few dimensions, about 1.1 in place of π/2.
"""

MEMORY = 20
"""Moves over which the criterion is averaged."""


class Trajectories(NamedTuple):
    """The metric, τ, the moves made so far, and running averages of the centre of the chains and of the criterion."""

    metric: Metric
    length: float
    centre: Tensor
    moves: int = 0
    square: float = 0.0
    since: int = 0


@dataclass(frozen=True, kw_only=True)
class Move(Info):
    """Where a move began and ended, with what speed, and its fraction of τ: what the criterion of τ needs."""

    begin: Tensor
    end: Tensor
    speed: Tensor
    fraction: float


class HMC(Sampler):
    """HMC(): Hamiltonian Monte Carlo; needs a log-density that torch can differentiate.

    `step_size` and `trajectory` (the longest integration time) fix what warm-up would learn; a fixed step is in the
    units of the positions, and so is the trajectory then. `max_steps` bounds the leapfrog steps of one move.

    >>> from likely.sampling import sample
    >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.9], [0.9, 1.0]]))
    >>> chains = sample(normal, [0.0, 0.0], HMC(), draws=500, chains=8, random_state=0)
    >>> bool((torch.cov(chains.flat.T)[0, 1] - 0.9).abs() < 0.1)
    True
    """

    step_size: float | None = None
    trajectory: float | None = None
    acceptance: float = 0.8
    max_steps: int = 256

    unbounded: ClassVar[bool] = True

    def validate(self) -> None:
        require(positive_or_none(self.step_size), self, "step_size", "None or a positive number")
        require(positive_or_none(self.trajectory), self, "trajectory", "None or a positive number")
        require(0 < self.acceptance < 1, self, "acceptance", "between 0 and 1")
        require(self.max_steps >= 1, self, "max_steps", "an integer above 0")

    def init(self, position: Tensor, log_prob: LogDensity) -> GradientState:
        state = start("HMC", position, log_prob, self.step_size)
        metric: Metric = state.tuning
        length = self.trajectory or max(1.0, 2 * metric.epsilon)
        return replace(state, tuning=Trajectories(metric, length, position.reshape(len(position), -1).mean(0)))

    def step(self, state: State, log_prob: LogDensity, generator: torch.Generator) -> tuple[State, Info]:
        assert isinstance(state, GradientState)
        tuning: Trajectories = state.tuning
        epsilon, factor = tuning.metric.epsilon, tuning.metric.factor
        fraction = spread_evenly(tuning.moves)
        steps = min(self.max_steps, max(1, math.ceil(fraction * tuning.length / epsilon)))
        first = thrown(state, factor, generator)
        point = first
        for _ in range(steps):
            point = leapfrog(log_prob, point, epsilon, factor)
        gain, diverged = gained(first.log_joint, point)
        acceptance = gain.clamp_max(0.0).exp()
        uniform = torch.rand(len(acceptance), generator=generator, dtype=acceptance.dtype, device=acceptance.device)
        new = moved(state, point, uniform < acceptance)
        stats = {
            "diverging": diverged,
            "energy": -first.log_joint,
            "n_steps": torch.full_like(acceptance, steps),
            "step_size": torch.full_like(acceptance, epsilon),
        }
        info = Move(acceptance, stats, begin=first.x, end=point.x, speed=point.v, fraction=fraction)
        return replace(new, tuning=tuning._replace(moves=tuning.moves + 1)), info

    def adapt(self, state: State, info: Info, index: int, total: int) -> State:
        assert isinstance(info, Move)
        tuning: Trajectories = state.tuning
        rows = state.position.reshape(len(state.position), -1)
        metric = tuning.metric.after(rows, info.acceptance, self.acceptance, index, total)
        if self.trajectory is None:
            tuning = self._longer(tuning, info)
            if metric.factor is not tuning.metric.factor:  # other units
                length = QUARTER if metric.factor.ndim == 2 else tuning.length
                tuning = tuning._replace(length=length, square=0.0, since=0)
            if metric.settled:
                tuning = tuning._replace(length=WIDER * tuning.length)
        return replace(state, tuning=tuning._replace(metric=metric))

    def _longer(self, tuning: Trajectories, move: Move) -> Trajectories:
        """τ after a step up the criterion C(τ)/τ in log τ, whose derivative is τC′/C − 1.

        C = E[(‖z′−m‖² − ‖z−m‖²)²]/4 for z = L⁻¹x; it and τC′ are averaged over about twenty moves, and so is the
        mean m unless there are more chains than that.
        """
        chains, factor, epsilon = len(move.begin), tuning.metric.factor, tuning.metric.epsilon
        rows = move.begin.reshape(chains, -1)
        centre = torch.lerp(tuning.centre, rows.mean(0), chains / (chains + MEMORY))
        begin, end = _white(rows - centre, factor), _white(move.end.reshape(chains, -1) - centre, factor)
        change = end.square().sum(1) - begin.square().sum(1)
        growth = change * (end * move.speed).sum(1) * move.fraction * tuning.length
        sizes = torch.stack([0.25 * change.square(), growth]).nan_to_num(0.0, 0.0, 0.0) @ move.acceptance.to(change)
        mean, rise = (float(size) / chains for size in sizes)
        gradient = rise - mean * tuning.length / (tuning.length + epsilon)
        square = (1 - 1 / MEMORY) * tuning.square + gradient**2 / MEMORY
        uphill = min(max(gradient / math.sqrt(square), -1.0), 1.0) if square > 0 else 0.0
        rate = 0.2 / math.sqrt(tuning.since + 16)
        length = min(tuning.length * math.exp(rate * uphill), self.max_steps * tuning.metric.typical)
        return tuning._replace(length=length, centre=centre, square=square, since=tuning.since + 1)


def _white(x: Tensor, factor: Tensor) -> Tensor:
    """L⁻¹ x of each chain."""
    return torch.linalg.solve_triangular(factor, x.T, upper=False).T if factor.ndim == 2 else x / factor


def spread_evenly(index: int) -> float:
    """Number `index` of the van der Corput sequence: evenly spread over (0, 1), in an order that looks like chance.

    >>> [spread_evenly(index) for index in range(5)]
    [0.5, 0.25, 0.75, 0.125, 0.625]
    """
    value, half = 0.0, 0.5
    number = index + 1
    while number:
        value += half * (number & 1)
        number >>= 1
        half /= 2
    return value
