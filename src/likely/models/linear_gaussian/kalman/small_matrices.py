"""Algebra of small matrices, compiled: plain loops, which for a few rows beat a call to a library.

Shapes come from the arrays, results go to arrays that are given, and nothing is allocated on the way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

__all__ = ["COMPILED", "add", "cholesky", "close", "fill", "grown", "load", "sandwich", "store"]

COMPILED: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True}
"""How recursions are compiled: once, kept on the disk, with numpy's rules for division by zero."""


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def fill(out: np.ndarray, value: float) -> None:
    """out = value, everywhere; like the three below, several times as fast here as a slice."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = value


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def add(matrix: np.ndarray, out: np.ndarray) -> None:
    """out = out + matrix"""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += matrix[i, j]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def load(table: np.ndarray, row: int, out: np.ndarray) -> None:
    """out = table[row]"""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = table[row, i, j]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def store(matrix: np.ndarray, table: np.ndarray, row: int) -> None:
    """table[row] = matrix"""
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            table[row, i, j] = matrix[i, j]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def sandwich(left: np.ndarray, middle: np.ndarray, work: np.ndarray, out: np.ndarray) -> None:
    """out = left · middle · leftᵀ, symmetric to the last bit."""
    rows, inner = left.shape
    for i in range(rows):
        for j in range(inner):
            total = 0.0
            for m in range(inner):
                total += left[i, m] * middle[m, j]
            work[i, j] = total
    for i in range(rows):
        for j in range(i + 1):
            total = 0.0
            for m in range(inner):
                total += work[i, m] * left[j, m]
            out[i, j] = total
            out[j, i] = total


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def cholesky(matrix: np.ndarray, lower: np.ndarray, size: int, floor: float) -> int:
    """lower · lowerᵀ = matrix over the first `size` rows; how many pivots were not above `floor` times their diagonal.

    Those have a column of zeros: what depends on the others, in a covariance, has no part of its own.
    """
    lost = 0
    for j in range(size):
        pivot = matrix[j, j]
        for m in range(j):
            pivot -= lower[j, m] * lower[j, m]
        sound = pivot > floor * matrix[j, j]
        lost += not sound
        root = math.sqrt(pivot) if sound else 0.0
        for i in range(j):
            lower[i, j] = 0.0
        lower[j, j] = root
        for i in range(j + 1, size):
            total = matrix[i, j]
            for m in range(j):
                total -= lower[i, m] * lower[j, m]
            lower[i, j] = total / root if sound else 0.0
    return lost


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def close(table: np.ndarray, row: int, other: np.ndarray, tolerance: float) -> bool:
    """Every entry of two covariances is equal up to `tolerance`, as a fraction of its two standard deviations."""
    for i in range(other.shape[0]):
        for j in range(i + 1):
            scale = math.sqrt(other[i, i] * other[j, j])
            if not abs(table[row, i, j] - other[i, j]) <= tolerance * scale:
                return False
    return True


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def grown(table: np.ndarray) -> np.ndarray:
    """A table (n, …, …) with room for twice as many rows."""
    bigger = np.empty((2 * table.shape[0], table.shape[1], table.shape[2]))
    bigger[: table.shape[0]] = table
    return bigger
