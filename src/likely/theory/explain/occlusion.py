"""Occlusion: what is lost where a part of a row is covered.

    a(p) = the mean over windows w that hold p of  f(x) − f(x with w covered)

No gradient is needed, so that any model can be asked.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...core.errors import DataError, SpecError
from ...core.spec import is_integer
from .attribution import Attribution
from .outputs import asked_output
from .places import places_of

__all__ = ["occlusion"]

MOST = 1 << 24
"""Numbers of covered rows that are asked about at once."""


def occlusion(
    model: Any,
    X: Any,
    target: Any = None,
    *,
    window: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    baseline: Any = 0.0,
    of: str = "auto",
) -> Attribution:
    """What f loses where a window slides over each row, in all channels, and what is below is set to `baseline`.

    Rows of a table have their columns covered one by one; give the means of the columns as the baseline. Of images
    (n, channels, height, width) the window is an eighth of each side, and moves by half of its own size. The model is
    anything with `predict_proba` or `predict`, or a function of arrays.

    >>> from likely import Regressor
    >>> model = Regressor().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 2.0, 5.0, 6.0])
    >>> bool(np.allclose(occlusion(model, [[1.0, 3.0]]).values, model.coef_ * [1.0, 3.0]))
    True
    """
    rows = np.array(X, dtype=None if isinstance(X, np.ndarray) else float)
    if rows.ndim < 2 or not len(rows) or rows.dtype.kind not in "fiub":
        raise DataError(f"X has shape {rows.shape} of {rows.dtype}; rows (n, …) of numbers are needed.")
    rows = rows if rows.dtype.kind == "f" else rows.astype(float)
    axes = (1,) if rows.ndim == 2 else tuple(range(2, rows.ndim))  # all channels of a place are covered together
    sides = tuple(rows.shape[axis] for axis in axes)
    table = rows.ndim == 2
    size = _sizes("window", window, (1,) if table else tuple(-(-side // 8) for side in sides), sides)
    step = _sizes("stride", stride, tuple(max(1, length // 2) for length in size), sides)
    cover = _cover(baseline, rows)
    ask, chosen, classes = asked_output(model, of)
    scores = ask(rows)
    place, names = places_of(scores, target, classes)
    own = scores[np.arange(len(rows)), place]
    total, count = np.zeros((len(rows), *sides)), np.zeros(sides)
    windows = list(
        product(*(_starts(side, length, move) for side, length, move in zip(sides, size, step, strict=True)))
    )
    together = max(1, MOST // rows.size)
    for first in range(0, len(windows), together):
        some = windows[first : first + together]
        covered = np.repeat(rows[None], len(some), 0)
        for copy, start in zip(covered, some, strict=True):
            where = (slice(None),) * axes[0] + tuple(slice(s, s + n) for s, n in zip(start, size, strict=True))
            copy[where] = cover[where]
        left = ask(covered.reshape(-1, *rows.shape[1:])).reshape(len(some), len(rows), -1)
        for lost, start in zip(own - left[:, np.arange(len(rows)), place], some, strict=True):
            inside = tuple(slice(s, s + n) for s, n in zip(start, size, strict=True))
            total[(slice(None), *inside)] += lost.reshape(-1, *(1 for _ in sides))
            count[inside] += 1
    values = total / np.maximum(count, 1)
    columns = getattr(model, "feature_names_in_", None) if table else None
    return Attribution(
        values if table else values[:, None],
        "occlusion",
        chosen,
        names,
        own,
        X=rows.astype(float),
        names=None if columns is None else tuple(map(str, columns)),
    )


def _starts(side: int, length: int, step: int) -> list[int]:
    """Where windows begin, so that the last one ends at the end."""
    return sorted({*range(0, side - length + 1, step), side - length})


def _sizes(name: str, given: Any, default: tuple[int, ...], sides: tuple[int, ...]) -> tuple[int, ...]:
    chosen = default if given is None else (given,) * len(sides) if isinstance(given, int) else tuple(given)
    fits = len(chosen) == len(sides) and all(is_integer(length) for length in chosen)
    if not fits or any(length > side for length, side in zip(chosen, sides, strict=True)):
        raise SpecError(f"{name}={given!r} must be integers from 1 to the sides of X, {sides}.")
    return chosen


def _cover(baseline: Any, rows: np.ndarray) -> np.ndarray:
    try:
        return np.broadcast_to(np.asarray(baseline, dtype=rows.dtype), rows.shape)
    except (TypeError, ValueError) as error:
        raise DataError(f"baseline must be a number, a row {rows.shape[1:]} or rows {rows.shape}.") from error
