"""Splits of rows into training, validation and test data: 70/20/10 unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from ..core.errors import DataError
from .protocol import as_array, take

__all__ = ["split"]


def split(
    X: Any,
    y: Any,
    sizes: Sequence[float] = (0.7, 0.2, 0.1),
    *,
    stratify: bool = False,
    random_state: Any = None,
) -> list[tuple[Any, Any]]:
    """Rows at random into parts of these `sizes`: a list of (X, y), by default for training, validation and test.

    With `stratify`, each part has the classes of y in the same proportions.

    >>> X, y = np.arange(20).reshape(10, 2), np.arange(10)
    >>> train, validation, test = split(X, y, random_state=0)
    >>> [len(part_y) for _, part_y in (train, validation, test)]
    [7, 2, 1]
    """
    rows = len(y)
    if rows != (X.shape[0] if hasattr(X, "shape") else len(X)):
        raise DataError(f"X and y must have as many rows; X has {len(X)}, y has {rows}.")
    fractions = np.asarray(sizes, dtype=float)
    if fractions.ndim != 1 or len(fractions) < 2 or not (fractions > 0).all() or abs(fractions.sum() - 1) > 1e-6:
        raise DataError(f"sizes must be two or more positive parts that sum to 1; found {tuple(sizes)}.")
    counts = np.diff(np.round(np.cumsum([0.0, *fractions]) * rows)).astype(int)
    if (counts == 0).any():
        raise DataError(f"{rows} rows are too few for sizes {tuple(sizes)}: a part would be empty.")
    rest, generator = np.arange(rows), check_random_state(random_state)
    labels = as_array(y) if stratify else None
    parts = []
    for count in counts[:-1]:
        part, rest = train_test_split(
            rest,
            train_size=int(count),
            random_state=generator,
            stratify=None if labels is None else labels[rest],
        )
        parts.append(part)
    return [(take(X, part), take(y, part)) for part in [*parts, rest]]
