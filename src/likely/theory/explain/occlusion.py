"""Occlusion: what is lost where a part of a row is covered.

    a(p) = the mean over windows w that hold p of  f(x) − f(x with w covered)

No gradient is needed, so that any model can be asked.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...core.errors import SpecError
from ...core.spec import is_integer
from .attribution import Attribution
from .covered import covered_of
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
    at: Any = None,
) -> Attribution:
    """What f loses where a window slides over each row, in all channels, and what is below is set to `baseline`.

    Rows of a table, an array or a frame, have their columns covered one by one; give the means of the columns as the
    baseline: a row, or of a frame a dict with a value for each column, or a frame of one row. Of images
    (n, channels, height, width) the window is an eighth of each side, and moves by half of its own size. The model is
    anything with `predict_proba` or `predict` (a `TableModel` with frames, too), or a function of arrays. Of a model
    that answers at positions, such as the pixels of an image, f is the mean over those `at`: one position (row,
    column), or a mask of them all.

    >>> from likely import Regressor
    >>> model = Regressor().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [1.0, 2.0, 5.0, 6.0])
    >>> bool(np.allclose(occlusion(model, [[1.0, 3.0]]).values, model.coef_ * [1.0, 3.0]))
    True
    """
    given = covered_of(X, baseline)
    table, sides = given.table, given.sides
    size = _sizes("window", window, (1,) if table else tuple(-(-side // 8) for side in sides), sides)
    step = _sizes("stride", stride, tuple(max(1, length // 2) for length in size), sides)
    ask, chosen, classes = asked_output(model, of, at)
    scores = ask(given.rows)
    place, names = places_of(scores, target, classes)
    count = len(scores)
    own = scores[np.arange(count), place]
    total, times = np.zeros((count, *sides)), np.zeros(sides)
    windows = list(
        product(*(_starts(side, length, move) for side, length, move in zip(sides, size, step, strict=True)))
    )
    together = max(1, MOST // given.size)
    for first in range(0, len(windows), together):
        some = windows[first : first + together]
        left = ask(given.where(some, size)).reshape(len(some), count, -1)
        for lost, start in zip(own - left[:, np.arange(count), place], some, strict=True):
            inside = tuple(slice(s, s + n) for s, n in zip(start, size, strict=True))
            total[(slice(None), *inside)] += lost.reshape(-1, *(1 for _ in sides))
            times[inside] += 1
    values = total / np.maximum(times, 1)
    columns = given.names or (getattr(model, "feature_names_in_", None) if table else None)
    return Attribution(
        values if table else values[:, None],
        "occlusion",
        chosen,
        names,
        own,
        X=given.numbers,
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
