"""The loop of a scan, compiled: each step is read once, while the one before it is still at hand."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["scan_ahead", "scan_back"]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def scan_ahead(decay: np.ndarray, u: np.ndarray, h: np.ndarray) -> None:
    """h_t = λ ⊙ h_{t−1} + u_t for decays (n, d) and u, h (n, t, d)."""
    rows, steps, width = u.shape
    for i in range(rows):
        for j in range(width):
            h[i, 0, j] = u[i, 0, j]
        for t in range(1, steps):
            for j in range(width):
                h[i, t, j] = u[i, t, j] + decay[i, j] * h[i, t - 1, j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def scan_back(decay: np.ndarray, u: np.ndarray, h: np.ndarray) -> None:
    """h_t = λ ⊙ h_{t+1} + u_t for decays (n, d) and u, h (n, t, d)."""
    rows, steps, width = u.shape
    for i in range(rows):
        for j in range(width):
            h[i, steps - 1, j] = u[i, steps - 1, j]
        for t in range(steps - 2, -1, -1):
            for j in range(width):
                h[i, t, j] = u[i, t, j] + decay[i, j] * h[i, t + 1, j]
