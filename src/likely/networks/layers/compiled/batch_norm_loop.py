"""The loops of batch norm in bfloat16, compiled: numbers are read in 16 bits, and added up and multiplied in 32.

A number in bfloat16 is the upper half of one in float32, and comes and goes as an unsigned integer of 16 bits. Rows lie
several to a line, (lines, rows·channels), so that there is a long inner loop over few channels too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["differentiate", "standardise", "widened"]

COMPILED = {"cache": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "reassoc"}, "nogil": True}
BLOCK = 128
"""Lines that are added up in float32 before their sum goes to float64."""


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def standardise(
    x: np.ndarray, affine: tuple[np.ndarray, np.ndarray], eps: float, rectified: bool, out: np.ndarray, of: np.ndarray
) -> None:
    """Write γ·(x − E[x])/√(V[x] + ε) + β, or what of it is positive, and E, V and 1/√(V + ε), `of` (3, channels)."""
    lines, width = x.shape
    mean, variance, inverse = of
    channels = len(mean)
    rows = x.size / channels
    mean[:] = _folded(_sums(x), channels) / rows
    variance[:] = _folded(_squares(x, _repeated(mean, width)), channels) / rows
    inverse[:] = 1 / np.sqrt(variance + np.float32(eps))
    factor, constant = _line(affine, mean, inverse, width)
    least = np.float32(0 if rectified else -np.inf)
    for i in range(lines):
        for j in range(width):
            value = widened(x[i, j]) * factor[j] + constant[j]
            out[i, j] = _rounded(least if value <= least else value)


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def differentiate(
    gradient: np.ndarray,
    x: np.ndarray,
    affine: tuple[np.ndarray, np.ndarray],
    of: np.ndarray,
    rectified: bool,
    by_x: np.ndarray,
    by_affine: np.ndarray,
) -> None:
    """Write what `standardise` passes back: for x, and for γ and β, (2, channels).

    With z = (x − E)/√(V + ε) and g = ∂L/∂out, or 0 where `out` was not positive:  ∂L/∂β = Σ g,  ∂L/∂γ = Σ g z,
    ∂L/∂x = γ/√(V + ε)·(g − mean(g) − z·mean(g z)).
    """
    lines, width = x.shape
    mean, _, inverse = of
    by_gain, by_shift = by_affine
    channels = len(mean)
    rows = np.float32(x.size / channels)
    factor, constant = _line(affine, mean, inverse, width)
    least = np.float32(0 if rectified else -np.inf)
    sums, products = _sums_and_products(gradient, x, _repeated(mean, width), factor, constant, least)
    by_shift[:] = _folded(sums, channels)
    by_gain[:] = _folded(products, channels) * inverse
    of_x = -affine[0] * inverse * inverse * by_gain / rows
    rest = -affine[0] * inverse * by_shift / rows - of_x * mean
    b, c = _repeated(of_x, width), _repeated(rest, width)
    for i in range(lines):
        for j in range(width):
            value = widened(x[i, j])
            g = widened(gradient[i, j])
            g = np.float32(0) if value * factor[j] + constant[j] <= least else g
            by_x[i, j] = _rounded(g * factor[j] + (value * b[j] + c[j]))


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _line(
    affine: tuple[np.ndarray, np.ndarray], mean: np.ndarray, inverse: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """What a line is multiplied by, and what is added to it."""
    factor = affine[0] * inverse
    return _repeated(factor, width), _repeated(affine[1] - mean * factor, width)


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def widened(half: Any) -> Any:
    """The float32 whose upper half this is."""
    return np.uint32(np.uint32(half) << np.uint32(16)).view(np.float32)


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _rounded(value: Any) -> Any:
    """The upper half of a float32, rounded to the nearest, and to even in the middle."""
    bits = np.float32(value).view(np.uint32)
    return np.uint16((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16))


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _sums(x: np.ndarray) -> np.ndarray:
    """Σ over lines."""
    lines, width = x.shape
    total, part = np.zeros(width), np.empty(width, np.float32)
    for start in range(0, lines, BLOCK):
        part[:] = 0
        for i in range(start, min(lines, start + BLOCK)):
            for j in range(width):
                part[j] += widened(x[i, j])
        total += part
    return total


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _squares(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Σ (x − mean)² over lines."""
    lines, width = x.shape
    total, part = np.zeros(width), np.empty(width, np.float32)
    for start in range(0, lines, BLOCK):
        part[:] = 0
        for i in range(start, min(lines, start + BLOCK)):
            for j in range(width):
                apart = widened(x[i, j]) - mean[j]
                part[j] += apart * apart
        total += part
    return total


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _sums_and_products(
    gradient: np.ndarray, x: np.ndarray, mean: np.ndarray, factor: np.ndarray, constant: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Σ g and Σ g (x − mean) over lines, for g where the output was more than the least."""
    lines, width = x.shape
    sums, products = np.zeros(width), np.zeros(width)
    part, crossed = np.empty(width, np.float32), np.empty(width, np.float32)
    for start in range(0, lines, BLOCK):
        part[:] = 0
        crossed[:] = 0
        for i in range(start, min(lines, start + BLOCK)):
            for j in range(width):
                value = widened(x[i, j])
                g = widened(gradient[i, j])
                g = np.float32(0) if value * factor[j] + constant[j] <= least else g
                part[j] += g
                crossed[j] += g * (value - mean[j])
        sums += part
        products += crossed
    return sums, products


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _folded(line: np.ndarray, channels: int) -> np.ndarray:
    """The sum over the rows of a line."""
    total = np.zeros(channels)
    for j in range(len(line)):
        total[j % channels] += line[j]
    return total


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _repeated(row: np.ndarray, width: int) -> np.ndarray:
    """A line of the same row several times."""
    line = np.empty(width, row.dtype)
    for j in range(width):
        line[j] = row[j % len(row)]
    return line
