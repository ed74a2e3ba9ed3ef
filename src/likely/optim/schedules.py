"""Schedules: how the step size changes over training, ηₜ = η·factor(t, T) at step t = 0, …, T − 1.

Lengths such as `warmup` are a fraction of T when below 1, and a number of steps from 1 on.
"""

from __future__ import annotations

import math

from ..core.spec import Spec, require
from .base import is_number

__all__ = ["Constant", "Cosine", "Exponential", "InverseSqrt", "Linear", "OneCycle", "Schedule", "StepDecay"]


class Schedule(Spec, axis="schedule"):
    """A pure function of the step that multiplies `lr`."""

    def factor(self, step: int, total: int) -> float:
        """What `lr` is multiplied by at step 0, 1, …, total − 1."""
        raise NotImplementedError(f"{type(self).__name__} must say its factor")


class Constant(Schedule):
    """1.

    >>> Constant().factor(5, 10)
    1.0
    """

    def factor(self, step: int, total: int) -> float:
        return 1.0


class StepDecay(Schedule):
    """decay^⌊t/every⌋: multiplied by `decay` after `every` steps (or that fraction of all steps).

    >>> [StepDecay(every=2, decay=0.5).factor(t, 6) for t in range(6)]
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """

    every: float = 1 / 3
    decay: float = 0.1

    def validate(self) -> None:
        needs = "positive: a number of steps, or a fraction of them when below 1"
        require(is_number(self.every) and self.every > 0, self, "every", needs)
        require(is_number(self.decay) and 0 < self.decay <= 1, self, "decay", "above 0 and at most 1")

    def factor(self, step: int, total: int) -> float:
        # a fraction of the steps that is an integer must not fall short of it by rounding: 0.1·30 is 3
        return self.decay ** math.floor(step / _steps(self.every, total) + 1e-9)


class Exponential(Schedule):
    """exp(−rate·t/T): falls by the factor e `rate` times over the training.

    >>> round(Exponential(rate=2.0).factor(50, 100), 4)
    0.3679
    """

    rate: float = 5.0

    def validate(self) -> None:
        require(is_number(self.rate) and self.rate >= 0, self, "rate", "0 or more")

    def factor(self, step: int, total: int) -> float:
        return math.exp(-self.rate * _progress(step, 0.0, total))


class Linear(Schedule):
    """Up in a line over w = `warmup` steps, (t + 1)/(w + 1), then down in a line to `final` at T.

    >>> [Linear().factor(t, 4) for t in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    """

    final: float = 0.0
    warmup: float = 0

    def validate(self) -> None:
        _require_final(self)
        _require_length(self)

    def factor(self, step: int, total: int) -> float:
        warmup = _steps(self.warmup, total)
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return self.final + (1 - self.final) * (1 - _progress(step, warmup, total))


class Cosine(Schedule):
    """Up in a line over w = `warmup` steps, (t + 1)/(w + 1), then down half a cosine to `final` at T.

    >>> [round(Cosine().factor(t, 4), 4) for t in range(4)]
    [1.0, 0.8536, 0.5, 0.1464]
    """

    final: float = 0.0
    warmup: float = 0

    def validate(self) -> None:
        _require_final(self)
        _require_length(self)

    def factor(self, step: int, total: int) -> float:
        warmup = _steps(self.warmup, total)
        if step < warmup:
            return (step + 1) / (warmup + 1)
        return _cosine(1.0, self.final, _progress(step, warmup, total))


class OneCycle(Schedule):
    """Half a cosine from `start` up to 1 at the fraction `warmup` of the steps, then half a cosine down to `final`.

    >>> [round(OneCycle(warmup=0.5, start=0.2, final=0.0).factor(t, 4), 4) for t in range(4)]
    [0.2, 1.0, 0.5, 0.0]
    """

    warmup: float = 0.3
    start: float = 0.04
    final: float = 4e-6

    def validate(self) -> None:
        require(
            is_number(self.warmup) and 0 < self.warmup < 1, self, "warmup", "a fraction of the steps, above 0, below 1"
        )
        require(is_number(self.start) and 0 <= self.start <= 1, self, "start", "0 or more and at most 1")
        _require_final(self)

    def factor(self, step: int, total: int) -> float:
        top = max(0.0, self.warmup * total - 1)
        if step < top:
            return _cosine(self.start, 1.0, step / top)
        return _cosine(1.0, self.final, _progress(step, top, total - 1))


class InverseSqrt(Schedule):
    """min((t + 1)/w, √(w/(t + 1))): up in a line over w = `warmup` steps, then down as 1/√t.

    >>> [round(InverseSqrt(warmup=2).factor(t, 8), 4) for t in (0, 1, 7)]
    [0.5, 1.0, 0.5]
    """

    warmup: float = 0.1

    def validate(self) -> None:
        _require_length(self)

    def factor(self, step: int, total: int) -> float:
        warmup = max(1.0, _steps(self.warmup, total))
        return min((step + 1) / warmup, math.sqrt(warmup / (step + 1)))


def _steps(length: float, total: int) -> float:
    """A length in steps; below 1 it is a fraction of the total."""
    return length if length >= 1 else length * total


def _progress(step: float, begin: float, end: float) -> float:
    """How far a step is from `begin` to `end`, in [0, 1]."""
    return min(1.0, max(0.0, (step - begin) / (end - begin))) if end > begin else 1.0


def _cosine(first: float, last: float, progress: float) -> float:
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * progress))


def _require_final(spec: Linear | Cosine | OneCycle) -> None:
    require(is_number(spec.final) and 0 <= spec.final <= 1, spec, "final", "0 or more and at most 1")


def _require_length(spec: Linear | Cosine | InverseSqrt) -> None:
    needs = "0 or more: a number of steps, or a fraction of them when below 1"
    require(is_number(spec.warmup) and spec.warmup >= 0, spec, "warmup", needs)
