"""Which of a model's numbers is explained, for models that are asked through their public door."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import DataError

__all__ = ["places_of"]


def places_of(scores: np.ndarray, target: Any, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Where the explained number of each row stands among its scores (n, k), and its name.

    By default it is the largest: the most probable class.

    >>> places_of(np.array([[0.1, 0.9], [0.8, 0.2]]), None, np.array(["a", "b"]))
    (array([1, 0]), array(['b', 'a'], dtype='<U1'))
    """
    rows, count = scores.shape
    known = np.arange(count) if classes is None else classes
    if target is None:
        place = scores.argmax(1)
    else:
        wanted = np.asarray(target)
        if wanted.ndim > 1 or (wanted.ndim == 1 and len(wanted) != rows):
            raise DataError(f"target has shape {wanted.shape}; one is needed, or one for each of {rows} rows.")
        match = wanted.reshape(-1, 1) == known.reshape(1, -1)
        if not match.any(1).all():
            missing = wanted.reshape(-1)[~match.any(1)][0]
            what = "classes" if classes is not None else "outputs"
            shown = missing.item() if hasattr(missing, "item") else missing
            raise DataError(f"target={shown!r} is not one of the {what} {', '.join(map(str, known[:10]))}.")
        place = np.broadcast_to(match.argmax(1), rows)
    return place, None if count == 1 else known[place]
