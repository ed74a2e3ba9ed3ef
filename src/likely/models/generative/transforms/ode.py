"""Ordinary differential equations dy/dt = f(t, y): fixed steps that gradients go through, and steps chosen by error.

    Runge–Kutta 4:        y ← y + h (k₁ + 2k₂ + 2k₃ + k₄)/6
    Dormand–Prince 5(4):  two orders from the same stages; their difference is the error that decides the next step

A state is a tuple of tensors, so that a log-determinant travels with the rows it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ....core.errors import TrainingError

__all__ = ["adaptive", "fixed"]

State = tuple[Tensor, ...]
Field = Callable[[float, State], State]

NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
LOWER = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
MOST_STEPS = 1_000
"""Smooth fields of networks take some ten; one that takes more is far from any that training gives."""


def fixed(field: Field, state: State, start: float, stop: float, steps: int) -> Iterator[State]:
    """The state after each of so many equal steps, by the method of Runge and Kutta.

    >>> *_, (last,) = fixed(lambda t, y: (y[0],), (torch.tensor([1.0], dtype=torch.float64),), 0.0, 1.0, 20)
    >>> round(float(last), 5)
    2.71828
    """
    h = (stop - start) / steps
    for step in range(steps):
        t = start + step * h
        k1 = field(t, state)
        k2 = field(t + h / 2, _moved(state, [(h / 2, k1)]))
        k3 = field(t + h / 2, _moved(state, [(h / 2, k2)]))
        k4 = field(t + h, _moved(state, [(h, k3)]))
        state = _moved(state, [(h / 6, k1), (h / 3, k2), (h / 3, k3), (h / 6, k4)])
        yield state


def adaptive(field: Field, state: State, start: float, stop: float, tol: float) -> State:
    """The state at `stop`, with an error of about `tol` (of values of order 1) in its first part.

    >>> (last,) = adaptive(lambda t, y: (y[0],), (torch.tensor([1.0], dtype=torch.float64),), 0.0, 1.0, 1e-9)
    >>> round(float(last), 8)
    2.71828183
    """
    sign, t, h = (1.0 if stop > start else -1.0), start, 0.1 * abs(stop - start)
    first = field(t, state)
    for _ in range(MOST_STEPS):
        h = min(h, abs(stop - t))
        stages = [first]
        for node, row in zip(NODES[1:], STAGES[1:], strict=True):
            moved = _moved(state, [(sign * h * part, k) for part, k in zip(row, stages, strict=True) if part])
            stages.append(field(t + sign * h * node, moved))
        gaps = [(sign * h * (a - b), k[0].detach()) for a, b, k in zip((*STAGES[-1], 0.0), LOWER, stages, strict=True)]
        gap = sum(part * k for part, k in gaps)
        assert isinstance(gap, Tensor)
        size = 1 + torch.maximum(state[0].detach().abs(), moved[0].detach().abs())
        error = float((gap / size).abs().max()) / tol  # the worst number: batches do not hide one another's errors
        if not math.isfinite(error):
            raise TrainingError(
                "The path of a continuous flow leaves what numbers can hold; its rows are far from the data."
            )
        if error <= 1:
            t, state, first = t + sign * h, moved, stages[-1]  # the last stage is the next step's first
            if abs(stop - t) <= 1e-12:
                return state
        h *= min(5.0, max(0.2, 0.9 * error**-0.2)) if error > 0 else 5.0
    raise TrainingError(f"The path of a continuous flow took more than {MOST_STEPS:,} steps; use a larger tol.")


def _moved(state: State, steps: list[tuple[float, State]]) -> State:
    """y + Σ h k, part by part."""
    parts = list(state)
    for h, k in steps:
        parts = [part + h * own for part, own in zip(parts, k, strict=True)]
    return tuple(parts)
