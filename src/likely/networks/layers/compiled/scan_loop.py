"""The loop of a scan, compiled: each step is read once, while the one before it is still at hand."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["gradients_of_ahead", "gradients_of_back", "scan_ahead", "scan_back"]


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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gradients_of_ahead(decay: np.ndarray, gradient: np.ndarray, h: np.ndarray, g: np.ndarray, rate: np.ndarray) -> None:
    """What `scan_ahead` passes back: g_t = gradient_t + λ̄ ⊙ g_{t+1} for u, and Σ_t h̄_{t−1} ⊙ g_t, (n, d), for λ."""
    rows, steps, width = gradient.shape
    for i in range(rows):
        for j in range(width):
            g[i, steps - 1, j] = gradient[i, steps - 1, j]
            rate[i, j] = 0
        for t in range(steps - 2, -1, -1):
            for j in range(width):
                rate[i, j] += np.conj(h[i, t, j]) * g[i, t + 1, j]
                g[i, t, j] = gradient[i, t, j] + np.conj(decay[i, j]) * g[i, t + 1, j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gradients_of_back(decay: np.ndarray, gradient: np.ndarray, h: np.ndarray, g: np.ndarray, rate: np.ndarray) -> None:
    """The same for `scan_back`: g_t = gradient_t + λ̄ ⊙ g_{t−1}, and Σ_t h̄_{t+1} ⊙ g_t."""
    rows, steps, width = gradient.shape
    for i in range(rows):
        for j in range(width):
            g[i, 0, j] = gradient[i, 0, j]
            rate[i, j] = 0
        for t in range(1, steps):
            for j in range(width):
                rate[i, j] += np.conj(h[i, t, j]) * g[i, t - 1, j]
                g[i, t, j] = gradient[i, t, j] + np.conj(decay[i, j]) * g[i, t - 1, j]
