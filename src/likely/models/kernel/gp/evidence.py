"""Evidence maximisation: the hyperparameters θ of kernel and noise under which the targets are most probable.

    θ̂ = argmax log p(y | X, θ)

Many rows cost much and say little more about θ than some of them do. So the climb begins on a few rows, where all
starts are followed by L-BFGS; the best goes on with three times as many rows, and so on to all, each time by a few
steps of BFGS that know the curvature of the stage before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ....core.errors import TrainingError

__all__ = ["Evidence", "Optimum", "maximise"]

FEWEST = 500
"""Rows of the first stage, at least."""
TIMES = 3
"""How many times more rows the next stage has."""
MAX_ITER = 200
TOLERANCE = 1e-4
"""The last stage ends where a step would win less, in nats."""
MOST_CURVED = 40
"""Numbers up to which the curvature is measured; beyond (the weights of a network), it is not."""

Bounds = Sequence[tuple[float | None, float | None]]
Report = Callable[..., None]


class Evidence(Protocol):
    """log p(y | X, θ) with its gradient, for all rows or some of them."""

    def __len__(self) -> int:
        """The number of rows."""

    def rows(self, index: Tensor) -> Self:
        """The evidence of some of the rows."""

    def value_and_grad(self, theta: Tensor) -> tuple[float, Tensor]:
        """The evidence of θ, and its gradient."""


OUTWARD = 1e-2
"""A bound counts as one that holds θ back if θ times e beyond it would win more, in nats."""


@dataclass(frozen=True)
class Optimum:
    """The best θ, how much evidence it has, how often that was asked, and whether the climb reached its top.

    `held` says which of them lie at a bound beyond which the evidence still rises; with any, there is no top. `ended`
    is whether the climb came to its end, at a bound or not.
    """

    hyperparameters: Tensor
    value: float
    evaluations: int
    converged: bool
    held: tuple[int, ...] = ()
    ended: bool = True

    def without(self, bounds: Set[int]) -> Optimum:
        """The same, if these are not to be called bounds."""
        held = tuple(index for index in self.held if index not in bounds)
        return replace(self, held=held, converged=self.ended and not held)


def maximise(
    evidence: Evidence,
    starts: Sequence[Tensor],
    bounds: Bounds,
    *,
    seed: int = 0,
    first: Evidence | None = None,
    report: Report = lambda done, **numbers: None,
) -> Optimum:
    """The θ of greatest evidence that a climb from one of the starts reaches.

    `first` has the stages before the last: the evidence itself, unless that of many rows is another than that of few.
    """
    first = evidence if first is None else first
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(first)))
    *sizes, _ = stages(len(evidence))
    parts = [first.rows(order[:size].sort().values) for size in sizes] + [evidence]
    climb = _best(parts[0], starts, bounds, report)
    counted = climb.evaluations
    for before, part in pairwise(parts):
        climb = _follow(part, climb.hyperparameters, bounds, report, _inverse(before, climb.hyperparameters, len(part)))
        counted += climb.evaluations
    return replace(climb, evaluations=counted)


def stages(rows: int) -> list[int]:
    """How many rows each stage has.

    >>> stages(1000), stages(2000), stages(10_000)
    ([1000], [666, 2000], [500, 1111, 3333, 10000])
    """
    sizes = [rows]
    while sizes[0] >= TIMES * FEWEST or (len(sizes) > 1 and sizes[0] > 2 * FEWEST):
        sizes.insert(0, max(FEWEST, sizes[0] // TIMES))
    return sizes


def _best(evidence: Evidence, starts: Sequence[Tensor], bounds: Bounds, report: Report) -> Optimum:
    """The best of the climbs; a start without evidence (a singular matrix) is passed over, unless all are."""
    climbs, failed = [], []
    for start in starts:
        try:
            climbs.append(_climb(_Asked(evidence, bounds, report), start, bounds))
        except TrainingError as error:
            failed.append(error)
    if not climbs:
        raise failed[0]
    best = max(climbs, key=lambda climb: climb.value)
    return replace(best, evaluations=sum(climb.evaluations for climb in climbs))


class _Asked:
    """The evidence inside its bounds, for numpy; it counts and remembers the best.

    Hyperparameters for which there is no evidence (a singular matrix) are steps too far, and count as very improbable.
    """

    def __init__(self, evidence: Evidence, bounds: Bounds, report: Report) -> None:
        self.evidence, self.report, self.count = evidence, report, 0
        self.low = np.array([-np.inf if bound is None else bound for bound, _ in bounds])
        self.high = np.array([np.inf if bound is None else bound for _, bound in bounds])
        self.best, self.least = (-np.inf, np.empty(0), np.empty(0)), np.inf

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, gradient = self.evidence.value_and_grad(torch.from_numpy(theta.copy()))
        except TrainingError:
            if not self.count:
                raise
            value, gradient = self.least - 1e3 * (1 + abs(self.least)), torch.zeros(len(theta), dtype=torch.float64)
        self.count += 1
        self.least = min(self.least, value)
        if value > self.best[0]:
            self.best = (value, theta.copy(), gradient.numpy().copy())
        self.report(self.count, log_evidence=value)
        return value, gradient.numpy()

    def clip(self, theta: np.ndarray) -> np.ndarray:
        return np.clip(theta, self.low, self.high)

    def optimum(self, converged: bool) -> Optimum:
        value, theta, gradient = self.best
        outward = ((theta <= self.low) & (gradient < -OUTWARD)) | ((theta >= self.high) & (gradient > OUTWARD))
        held = tuple(np.flatnonzero(outward).tolist())
        return Optimum(torch.from_numpy(theta), value, self.count, converged and not held, held, converged)


def _climb(asked: _Asked, start: Tensor, bounds: Bounds) -> Optimum:
    """An ascent from anywhere, by L-BFGS."""
    origin = asked.clip(start.numpy())
    if not len(origin):
        asked(origin)
        return asked.optimum(True)

    def cost(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = asked(theta)
        return -value, -gradient

    options = {"maxiter": MAX_ITER, "maxfun": 2 * MAX_ITER, "ftol": 1e-8}
    ended: Any = minimize(cost, origin, jac=True, method="L-BFGS-B", bounds=list(bounds), options=options)
    return asked.optimum(ended.status != 1)


def _follow(evidence: Evidence, start: Tensor, bounds: Bounds, report: Report, inverse: np.ndarray | None) -> Optimum:
    """An ascent from near the top by BFGS, which begins with the inverse of a curvature like its own."""
    asked = _Asked(evidence, bounds, report)
    if inverse is None:
        return _climb(asked, start, bounds)
    theta = asked.clip(start.numpy())
    value, gradient = asked(theta)
    for _ in range(MAX_ITER):
        held = ((theta <= asked.low) & (gradient < 0)) | ((theta >= asked.high) & (gradient > 0))
        step = np.where(held, 0.0, inverse @ np.where(held, 0.0, gradient))
        gain = float(step @ gradient)
        if gain < 2 * TOLERANCE:
            return asked.optimum(True)
        longest = max(1.0, float(np.abs(step).max()))  # no hyperparameter changes by more than a factor e at once
        step, gain = step / longest, gain / longest
        length = 1.0
        while True:
            trial = asked.clip(theta + length * step)
            reached, gradient_there = asked(trial)
            rise = reached - value
            if rise >= 1e-4 * length * gain:
                break
            # where the parabola through both heights and the gradient has its top
            length *= float(np.clip(0.5 * length * gain / (length * gain - rise), 0.1, 0.5))
            if length < 1e-8:
                return asked.optimum(gain < 1e-2)
        moved, bent = trial - theta, gradient - gradient_there
        if moved @ bent > 1e-12:
            turn = np.eye(len(moved)) - np.outer(moved, bent) / (moved @ bent)
            inverse = turn @ inverse @ turn.T + np.outer(moved, moved) / (moved @ bent)
        theta, value, gradient = trial, reached, gradient_there
    return asked.optimum(False)


def _inverse(evidence: Evidence, top: Tensor, rows: int) -> np.ndarray | None:
    """(−∂²log p)⁻¹ at the top, for so many rows, by differences of the gradient; 1 in flat directions."""
    if not 0 < len(top) <= MOST_CURVED:
        return None
    width = 1e-3
    try:
        gradient = evidence.value_and_grad(top)[1]
        columns = [
            evidence.value_and_grad(top + width * step)[1] - gradient
            for step in torch.eye(len(top), dtype=torch.float64)
        ]
    except TrainingError:
        return None
    curvature = -(rows / len(evidence)) * torch.stack(columns) / width
    values, vectors = torch.linalg.eigh(0.5 * (curvature + curvature.mT))
    return ((vectors / values.abs().clamp_min(1.0)) @ vectors.mT).numpy()
