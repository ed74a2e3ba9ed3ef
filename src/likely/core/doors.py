"""The door of a compiled loop: what it indexes is checked once per call, since inside nothing is.

A compiled loop trusts its arguments: with a row too few it would read, or write, memory that is not its own. These
checks compare shapes, at a microsecond an array; those of indices make one pass over them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .declared import match
from .errors import DataError

__all__ = ["check_indices", "check_offsets", "check_sizes"]


def check_sizes(owner: str, arrays: dict[str, tuple[Any, str]]) -> dict[str, int]:
    """The sizes by name of arrays that are used together, each given with its axes as in `declared.Array`.

    >>> check_sizes("viterbi", {"initial": (np.ones(2), "K"), "transition": (np.ones((2, 2)), "K K")})
    {'K': 2}
    >>> check_sizes("viterbi", {"initial": (np.ones(2), "K"), "transition": (np.ones((2, 1)), "K K")})
    Traceback (most recent call last):
    likely.core.errors.DataError: viterbi needs initial (K) and transition (K, K); found (2,) and (2, 1).
    """
    known = _matched(*((axes, tuple(array.shape)) for array, axes in arrays.values()))
    if known is None:
        needs = " and ".join(f"{name} ({', '.join(own.split())})" for name, (_, own) in arrays.items())
        shapes = " and ".join(str(tuple(given.shape)) for given, _ in arrays.values())
        raise DataError(f"{owner} needs {needs}; found {shapes}.")
    return dict(known)


@lru_cache(maxsize=256)  # the same few shapes come at every step of a fit
def _matched(*given: tuple[str, tuple[int, ...]]) -> dict[str, int] | None:
    """The sizes by name that shapes give to their axes; None if they do not agree."""
    known: dict[str, int] = {}
    for axes, shape in given:
        sizes = match(axes.split(), shape, known)
        if sizes is None:
            return None
        known.update(sizes)
    return known


def check_offsets(owner: str, offsets: np.ndarray, rows: int) -> None:
    """Where sequences start (n + 1,): integers from 0 that never fall and end at the number of rows.

    >>> check_offsets("viterbi", np.array([0, 3]), 2)
    Traceback (most recent call last):
    likely.core.errors.DataError: viterbi needs offsets that rise from 0 to 2, the number of rows; found 0 … 3.
    """
    sound = offsets.ndim == 1 and len(offsets) >= 1 and offsets.dtype.kind == "i"
    if not sound or offsets[0] != 0 or offsets[-1] != rows or bool((offsets[1:] < offsets[:-1]).any()):
        given = f"{offsets[0]} … {offsets[-1]}" if offsets.ndim == 1 and len(offsets) else f"shape {offsets.shape}"
        raise DataError(f"{owner} needs offsets that rise from 0 to {rows}, the number of rows; found {given}.")


def check_indices(owner: str, name: str, indices: np.ndarray, size: int, *, least: int = 0) -> None:
    """Integers from `least` that are less than a size.

    >>> check_indices("infer", "words", np.array([0, 9]), 5)
    Traceback (most recent call last):
    likely.core.errors.DataError: infer needs words from 0 to 4; found 0 to 9.
    """
    if indices.dtype.kind not in "iu":
        raise DataError(f"{owner} needs {name} that are integers; found {indices.dtype}.")
    if indices.size and not (indices.min() >= least and indices.max() < size):
        span = f"{indices.min()} to {indices.max()}"
        raise DataError(f"{owner} needs {name} from {least} to {size - 1}; found {span}.")
