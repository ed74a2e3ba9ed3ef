"""Which of a model's numbers is explained: of its classes or outputs, and of the positions that it answers at."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import DataError

__all__ = ["places_of", "region_of", "which_positions"]


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


def region_of(at: Any, sides: tuple[int, ...]) -> np.ndarray:
    """Which of all positions count, flat: one position (row, column), or those of a mask.

    >>> region_of((0, 1), (2, 2))
    array([False,  True, False, False])
    """
    wanted = np.asarray(at.cpu() if hasattr(at, "cpu") else at)
    if wanted.dtype == bool and wanted.shape == sides and wanted.any():
        return wanted.ravel()
    if wanted.dtype.kind in "iu" and wanted.shape == (len(sides),) and (wanted >= 0).all() and (wanted < sides).all():
        mask = np.zeros(sides, bool)
        mask[tuple(wanted.tolist())] = True
        return mask.ravel()
    raise DataError(
        f"at={_short(at)} must be a position inside {sides}, such as {tuple(side // 2 for side in sides)}, or a mask: "
        f"an array of {sides} truth values, some of them true."
    )


def which_positions(model: Any, sides: tuple[int, ...]) -> DataError:
    """What to say where a model answers at positions, and none was asked for."""
    return DataError(
        f"The {type(model).__name__} has labels at positions {sides}; say which of them are explained: at=(row, "
        "column), or a mask of them."
    )


def _short(at: Any) -> str:
    shape = np.shape(at)
    return repr(at) if len(shape) < 2 and np.size(at) < 5 else f"an array {shape}"
