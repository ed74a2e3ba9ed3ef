"""The loops of max pooling in bfloat16, compiled: over images (n, height, width, channels) as bits, in integers of 16.

Blocks of f × f positions do not overlap. The place of a maximum in its block is counted row by row, from 0. All numbers
of the inner loops have 16 bits, so that a processor takes as many of them at a time as it can.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["pooled", "spread_back"]

COMPILED = {"cache": True, "error_model": "numpy", "nogil": True}


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def pooled(x: np.ndarray, factor: int, out: np.ndarray, place: np.ndarray) -> None:
    """Write the maximum of each block and its place: the first one where several are equal; NaN is above all."""
    images, height, width, channels = out.shape
    best, ranks, at = np.empty(channels, np.int16), np.empty(channels, np.int16), np.empty(channels, np.int16)
    for image in range(images):
        for i in range(height):
            for j in range(width):
                for c in range(channels):
                    best[c] = x[image, i * factor, j * factor, c]
                    ranks[c] = _rank(best[c])
                    at[c] = 0
                for p in range(factor):
                    for q in range(factor):
                        here = np.int16(p * factor + q)
                        for c in range(channels):  # the first position is not above itself
                            value = x[image, i * factor + p, j * factor + q, c]
                            rank = _rank(value)
                            above = rank > ranks[c]
                            best[c] = value if above else best[c]
                            ranks[c] = rank if above else ranks[c]
                            at[c] = here if above else at[c]
                for c in range(channels):
                    out[image, i, j, c] = best[c]
                    place[image, i, j, c] = at[c]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def spread_back(gradient: np.ndarray, place: np.ndarray, factor: int, by_x: np.ndarray) -> None:
    """Write the gradient of each block where its maximum was, and 0 elsewhere."""
    images, height, width, channels = gradient.shape
    for image in range(images):
        for i in range(height):
            for p in range(factor):
                for j in range(width):
                    for q in range(factor):
                        own = np.int16(p * factor + q)
                        for c in range(channels):
                            here = place[image, i, j, c] == own
                            value = gradient[image, i, j, c] if here else np.int16(0)
                            by_x[image, i * factor + p, j * factor + q, c] = value


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _rank(bits: Any) -> Any:
    """An integer in the order of the numbers that the bits stand for: −0 is 0, and NaN above infinity."""
    sign = bits >> np.int16(15)  # 0 or −1
    rank = np.int16((bits ^ (sign & np.int16(0x7FFF))) - sign)
    return np.int16(0x7FFF) if (bits & np.int16(0x7FFF)) > np.int16(0x7F80) else rank
