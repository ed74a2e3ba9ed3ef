"""Rows of independent normal columns under many means and scales: one pass, compiled.

log p(yᵢ | k) = levelₖ − ½ Σⱼ ((yᵢⱼ − meanⱼₖ) / scaleⱼₖ)²
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["normal_rows"]


@njit(cache=True, error_model="numpy", fastmath={"contract", "nsz"}, nogil=True)  # type: ignore[untyped-decorator]
def normal_rows(y: np.ndarray, mean: np.ndarray, inverse: np.ndarray, level: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` (n, k) from y (n, c), the means and inverse scales (c, k), and the levels (k,).

    >>> out = np.empty((1, 2))
    >>> normal_rows(np.array([[1.0, 2.0]]), np.zeros((2, 2)), np.ones((2, 2)), np.array([0.0, 1.0]), out)
    >>> out
    array([[-2.5, -1.5]])
    """
    rows, columns = y.shape
    size = level.shape[0]
    total = np.empty(size)  # nothing else can be at this place, which the compiler knows
    for i in range(rows):
        for k in range(size):
            total[k] = level[k]
        for j in range(columns):
            own = y[i, j]
            for k in range(size):
                gap = (own - mean[j, k]) * inverse[j, k]
                total[k] -= 0.5 * gap * gap
        for k in range(size):
            out[i, k] = total[k]
