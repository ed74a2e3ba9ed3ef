"""Weights of pixels from their masks: borders between regions count more, since few pixels make them.

w(p) = 1 + strength · exp(−d(p)² / 2 width²),     d(p) the distance to the nearest pixel of another class

They are given to `fit` as sample_weight, (n, height, width). A weighted fit is a fit to other data: its probabilities
are those of a world with more borders, so calibration is judged without them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import DataError, SpecError

__all__ = ["boundary_weights"]


def boundary_weights(masks: Any, width: float = 2.0, strength: float = 5.0) -> np.ndarray:
    """The weight of each pixel of masks (n, height, width): 1 far from borders, 1 + `strength` or less at them.

    `width` is how far a border reaches, in pixels. They are scaled to a mean of 1 over all masks, so that a prior and
    a rate mean what they did.

    >>> weights = boundary_weights([[[0, 0, 0, 0, 1, 1, 1, 1]]], width=1.0, strength=4.0)
    >>> (weights[0, 0, :4] / weights[0, 0, 0]).round(2)
    array([1.  , 1.04, 1.54, 3.42])
    >>> float(weights.mean().round(6))
    1.0
    """
    labels = np.asarray(masks)
    if labels.ndim != 3 or 0 in labels.shape:
        raise DataError(f"masks has shape {labels.shape}; the classes of pixels, (n, height, width), are needed.")
    if not width > 0 or not strength >= 0:
        raise SpecError(f"width={width!r} must be positive, and strength={strength!r} 0 or more.")
    near = np.stack([np.exp(-(_distance(mask) ** 2) / (2 * width**2)) for mask in labels])
    weights = 1 + strength * near
    return weights / weights.mean()


def _distance(mask: np.ndarray) -> np.ndarray:
    """How far each pixel is from the nearest one of another class; ∞ where there is none."""
    from scipy.ndimage import distance_transform_edt

    distance = np.full(mask.shape, np.inf)
    classes = np.unique(mask)
    for label in classes if len(classes) > 1 else ():
        own = mask == label
        distance[own] = distance_transform_edt(own)[own]
    return distance
