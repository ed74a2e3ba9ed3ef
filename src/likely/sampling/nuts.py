"""The no-U-turn sampler: Hamiltonian trajectories that double, forward or back at random, until they turn round.

    a trajectory of points a … b turns when  ρ·v_a ≤ 0  or  ρ·v_b ≤ 0,     ρ = Σ v − ½(v_a + v_b)
    the draw is a point of the trajectory, with probability ∝ exp(−H),     H = −log p(x) + ½‖v‖²

ρ is the way from a to b by the trapezoid rule. No balanced subtree of the doublings may have turned either, or the move
could not be undone; and the halves of each are looked at together with the one point next to them, for a U-turn may
lie between. All chains grow their trees side by side, leaf by leaf, and those whose tree is done wait for the others.
Complete subtrees are joined as digits of a binary counter are: 2ʲ leaves need j of them in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..core.spec import require
from .density import LogDensity
from .leapfrog import Point, gained, leapfrog
from .metric import (
    GradientState,
    Metric,
    positive_or_none,
    start,
    thrown,
)
from .sampler import Info, Sampler, State

__all__ = ["NUTS"]


class NUTS(Sampler):
    """NUTS(): Hamiltonian Monte Carlo whose trajectories are as long as each region needs; needs a gradient.

    `acceptance` is what warm-up tunes the step towards; nearer to 1 for targets with narrow regions. `step_size` fixes
    the step, in the units of the positions. A trajectory has at most 2^`max_depth` − 1 leapfrog steps.

    >>> from likely.sampling import sample
    >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.9], [0.9, 1.0]]))
    >>> chains = sample(normal, [0.0, 0.0], NUTS(), draws=300, warmup=200, chains=8, random_state=0)
    >>> bool((torch.cov(chains.flat.T)[0, 1] - 0.9).abs() < 0.1)
    True
    """

    step_size: float | None = None
    acceptance: float = 0.8
    max_depth: int = 10

    unbounded: ClassVar[bool] = True

    def validate(self) -> None:
        require(positive_or_none(self.step_size), self, "step_size", "None or a positive number")
        require(0 < self.acceptance < 1, self, "acceptance", "between 0 and 1")
        require(self.max_depth >= 1, self, "max_depth", "an integer above 0")

    def init(self, position: Tensor, log_prob: LogDensity) -> GradientState:
        return start("NUTS", position, log_prob, self.step_size)

    def step(self, state: State, log_prob: LogDensity, generator: torch.Generator) -> tuple[State, Info]:
        assert isinstance(state, GradientState)
        metric: Metric = state.tuning
        walk = Walk(log_prob, metric.epsilon, metric.factor, generator)
        left = right = thrown(state, metric.factor, generator)
        origin, ways = left.log_joint, left.v
        chosen, weight = Place(left.x, left.value, left.gradient), torch.zeros_like(origin)
        growing, depth = torch.ones_like(origin, dtype=torch.bool), torch.zeros_like(origin)
        tally = Tally(depth, depth, ~growing)
        for level in range(self.max_depth):
            forward = walk.uniform(origin) < 0.5
            sign = torch.where(forward, 1.0, -1.0).to(ways).unsqueeze(1)
            near, far = _pick(forward, right, left), torch.where(forward.unsqueeze(1), left.v, right.v)
            # going back is going forward with the speed turned round
            old = Span(sign * ways, sign * far, sign * near.v)
            tree = _subtree(walk, near._replace(v=old.last), origin, level, growing, tally)
            tally, depth = tree.tally, depth + growing
            # the new half is preferred: taken as often as it outweighs the old one
            taken = tree.whole & (walk.uniform(origin).log() < tree.weight - weight)
            chosen, weight = _pick(taken, tree.chosen, chosen), torch.logaddexp(weight, tree.weight)
            end = tree.end._replace(v=sign * tree.end.v)
            left, right = _pick(forward, left, end), _pick(forward, end, right)
            ways = ways + sign * tree.span.ways
            growing = tree.whole & ~_turned(old, tree.span)
            if not bool(growing.any()):
                break
        stats = {
            "diverging": tally.diverged,
            "energy": -origin,
            "n_steps": tally.steps,
            "tree_depth": depth,
            "step_size": torch.full_like(origin, metric.epsilon),
        }
        new = GradientState(chosen.x, chosen.value, metric, chosen.gradient)
        return new, Info(tally.accepted / tally.steps, stats)

    def adapt(self, state: State, info: Info, index: int, total: int) -> State:
        rows = state.position.reshape(len(state.position), -1)
        return replace(state, tuning=state.tuning.after(rows, info.acceptance, self.acceptance, index, total))


@dataclass(frozen=True)
class Walk:
    """What every leapfrog step of a move has in common."""

    log_prob: LogDensity
    epsilon: float
    factor: Tensor
    generator: torch.Generator

    def on(self, point: Point) -> Point:
        """The next point."""
        return leapfrog(self.log_prob, point, self.epsilon, self.factor)

    def uniform(self, like: Tensor) -> Tensor:
        """A uniform number for each chain."""
        return torch.rand(len(like), generator=self.generator, dtype=like.dtype, device=like.device)


class Place(NamedTuple):
    """A point of the trajectory without its speed."""

    x: Tensor
    value: Tensor
    gradient: Tensor


class Span(NamedTuple):
    """A run of points, in the order in which they were reached: Σ v, and v of the first and of the last."""

    ways: Tensor
    first: Tensor
    last: Tensor


class Tally(NamedTuple):
    """Over all leaves of a move: Σ min(1, exp(−ΔH)), how many there were, and whether one diverged."""

    accepted: Tensor
    steps: Tensor
    diverged: Tensor


class Subtree(NamedTuple):
    """A new half: its last point, the place chosen from it, log Σ exp(−ΔH), and the chains in which it is whole."""

    end: Point
    span: Span
    chosen: Place
    weight: Tensor
    whole: Tensor
    tally: Tally


def _subtree(walk: Walk, point: Point, origin: Tensor, level: int, growing: Tensor, tally: Tally) -> Subtree:
    """2^level steps on from `point`, in the chains that are growing; a chain that turns or diverges is not whole."""
    alive, weight = growing, torch.full_like(origin, -torch.inf)
    chosen = Place(point.x, point.value, point.gradient)
    accepted, steps, lost = tally
    spans: list[Span] = []  # complete subtrees, each larger than the next, as the ones of a binary number
    for leaf in range(2**level):
        point = walk.on(point)
        gain, diverged = gained(origin, point)
        accepted, steps = accepted + alive * gain.clamp_max(0.0).exp(), steps + alive
        lost, alive = lost | (alive & diverged), alive & ~diverged
        weight = torch.logaddexp(weight, gain)
        taken = walk.uniform(origin).log() < gain - weight  # each leaf in proportion to its weight
        chosen = _pick(taken, Place(point.x, point.value, point.gradient), chosen)
        span = Span(point.v, point.v, point.v)
        for _ in range(_ending(leaf)):
            other = spans.pop()
            alive = alive & ~_turned(other, span)
            span = Span(other.ways + span.ways, other.first, span.last)
        spans.append(span)
        if not bool(alive.any()):
            break
    return Subtree(point, span, chosen, weight, alive, Tally(accepted, steps, lost))


def _ending(leaf: int) -> int:
    """How many balanced subtrees of two leaves or more end at this leaf: the ones at the end of its binary form.

    >>> [_ending(leaf) for leaf in range(8)]
    [0, 1, 0, 2, 0, 1, 0, 3]
    """
    return (leaf ^ (leaf + 1)).bit_length() - 1


def _turned(one: Span, two: Span) -> Tensor:
    """Whether two runs, joined, have turned, or each with the point of the other that is next to it: (chains,)."""
    least = _least(one.ways + two.ways, one.first, two.last)
    if one.ways is not one.first:  # of single points all three are the same
        least = torch.minimum(least, _least(one.ways + two.first, one.first, two.first))
        least = torch.minimum(least, _least(one.last + two.ways, one.last, two.last))
    return least <= 0


def _least(ways: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The lesser of ρ·v at the two ends."""
    rho = torch.sub(ways, first + last, alpha=0.5)
    return torch.minimum((rho * first).sum(1), (rho * last).sum(1))


P = TypeVar("P", Point, Place)


def _pick(mask: Tensor, yes: P, no: P) -> P:
    """Chain by chain, one or the other."""
    return type(yes)(*(torch.where(mask.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(yes, no, strict=True)))
