"""What the compiled loops over topics share: how they are compiled, and rows filled up to whole vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FAST", "LANES", "padded"]

LANES = 8
"""Rows of topics are a multiple of this long, so that the loops over them have no rest."""

FAST: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
}
"""Sums may be taken in any order and products fused; infinities and NaN keep their meaning."""


def padded(rows: np.ndarray, fill: float, dtype: type = np.float64) -> np.ndarray:
    """The array with its last axis filled up to a multiple of the lanes.

    >>> padded(np.ones((2, 3)), 0.0)[0]
    array([1., 1., 1., 0., 0., 0., 0., 0.])
    """
    size = rows.shape[-1]
    out = np.full((*rows.shape[:-1], -(-size // LANES) * LANES), fill, dtype)
    out[..., :size] = rows
    return out
