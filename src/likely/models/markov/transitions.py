"""Which transitions a chain of states allows, and where it spends its time in the long run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import SpecError

__all__ = ["Transitions", "allowed_transitions", "long_run"]

Transitions = Any
""" "full", "left-right", "cyclic", or a K × K array whose true entries are allowed."""


def allowed_transitions(transitions: Transitions, states: int) -> tuple[np.ndarray, np.ndarray]:
    """Allowed transitions (K, K) and first states (K,), both true or false.

    >>> allowed_transitions("left-right", 3)[0].astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    first = np.ones(states, dtype=bool)
    if isinstance(transitions, str):
        if transitions == "full":
            return np.ones((states, states), dtype=bool), first
        if transitions == "cyclic":
            return np.eye(states, dtype=bool) | np.roll(np.eye(states, dtype=bool), 1, axis=1), first
        if transitions == "left-right":
            return np.triu(np.ones((states, states), dtype=bool)), np.arange(states) == 0
        raise SpecError(
            f'transitions={transitions!r}: use "full", "left-right", "cyclic", or an array of which are allowed.'
        )
    try:
        given = np.asarray(transitions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SpecError(f"transitions={transitions!r} is not an array of which transitions are allowed.") from error
    if given.shape != (states, states):
        raise SpecError(f"transitions has shape {given.shape}, but {states} states need ({states}, {states}).")
    allowed = np.nan_to_num(given) != 0
    dead = np.flatnonzero(~allowed.any(1))
    if len(dead):
        raise SpecError(
            f"row {dead[0]} of transitions allows nothing: state {dead[0]} has no successor; allow one, or itself."
        )
    return allowed, first


def long_run(initial: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """lim (1/n) Σₜ π Aᵗ: the stationary distribution, or the mixture of several that the first states lead to.

    The lazy chain (A + 1)/2 has the same limit and no period, so that its powers converge.

    >>> long_run(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.3, 0.7]])).round(4)
    array([0.75, 0.25])
    """
    power = (transition + np.eye(len(initial))) / 2
    for _ in range(200):  # 2²⁰⁰ steps
        square = power @ power
        square /= square.sum(1, keepdims=True)
        if np.array_equal(square, power):
            break
        power = square
    return initial @ power
