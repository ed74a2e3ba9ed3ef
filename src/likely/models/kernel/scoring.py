"""How well predictions of a kernel machine are: R² of numbers, or the accuracy of labels."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ...core.errors import DataError

__all__ = ["quality"]


def quality(actual: np.ndarray, predicted: np.ndarray, seen: np.ndarray, weight: Tensor | None, labels: bool) -> float:
    """Over the targets that are `seen`, that is, not missing.

    >>> quality(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([True, True, False]), None, labels=True)
    1.0
    """
    from sklearn.metrics import accuracy_score, r2_score  # slow to import, and not needed to fit or to predict

    if not seen.any():
        raise DataError("y has no target to score: every one is missing.")
    counts = None if weight is None else weight.numpy()[seen]
    measure = accuracy_score if labels else r2_score
    return float(measure(actual[seen], predicted[seen], sample_weight=counts))
