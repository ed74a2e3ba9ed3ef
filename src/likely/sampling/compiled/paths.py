"""Paths of finite chains, compiled: one uniform number per step through the cumulative row of the present state."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["walk"]


@njit(cache=True)
def walk(first: np.ndarray, cumulative: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """States (chains, steps) for uniform numbers (chains, steps); the first by `first`, then by the rows."""
    chains, steps = uniform.shape
    states = np.empty((chains, steps), np.int64)
    for chain in range(chains):
        state = np.searchsorted(first, uniform[chain, 0], side="right")
        states[chain, 0] = state
        for step in range(1, steps):
            state = np.searchsorted(cumulative[state], uniform[chain, step], side="right")
            states[chain, step] = state
    return states
