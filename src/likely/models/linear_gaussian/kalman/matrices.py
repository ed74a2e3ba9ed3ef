"""The matrices of a Kalman filter as they are given: numbers, lists or arrays, checked and brought to their shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....core.errors import SpecError
from .recursion import SHAPES, System

__all__ = ["DIFFUSE", "count_states", "read_learn", "read_matrix"]

DIFFUSE = 1e6
"""A diffuse initial covariance is this many times the mean square of the data."""


def count_states(n_states: Any, given: Mapping[str, Any]) -> int:
    """How many states there are: as said, or as the given matrices have; 2 if nothing says.

    >>> count_states(None, {"transition": [[1, 1], [0, 1]], "observation": None})
    2
    """
    if n_states is not None:
        if not isinstance(n_states, int | np.integer) or isinstance(n_states, bool) or n_states < 1:
            raise SpecError(f"KalmanFilter(n_states={n_states!r}): n_states must be a positive integer, or None.")
        return int(n_states)
    for name, axes in SHAPES.items():
        shape = _shape(given.get(name))
        if "k" in axes and len(shape) == len(axes):
            return int(shape[axes.index("k")])
        if axes == "kk" and len(shape) == 1:
            return int(shape[0])
    return 2


def read_matrix(name: str, value: Any, k: int, p: int, scale: float) -> np.ndarray | None:
    """One argument as a float64 array of its shape; None stays None.

    A number is the same for all: that variance for each state, that offset for each column. A vector of variances is a
    diagonal covariance. "diffuse" is DIFFUSE times `scale`.

    >>> read_matrix("transition_covariance", [1, 0], 2, 1, 1.0)
    array([[1., 0.],
           [0., 0.]])
    """
    if value is None:
        return None
    if name == "initial_covariance" and isinstance(value, str) and value == "diffuse":
        return DIFFUSE * scale * np.eye(k)
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        hint = ' or "diffuse"' if name == "initial_covariance" else ""
        raise SpecError(f"KalmanFilter({name}={_short(value)}): {name} must be numbers{hint} ({error}).") from error
    sizes = {"k": k, "p": p}
    shape = tuple(sizes[axis] for axis in SHAPES[name])
    square = name.endswith("covariance")
    if array.ndim == 0 and (square or len(shape) == 1 or shape == (1, 1)):
        array = array * np.eye(shape[0]) if len(shape) == 2 else np.full(shape, float(array))
    if square and array.ndim == 1 and array.shape == shape[:1]:
        array = np.diag(array)
    if array.shape != shape:
        words = {"k": f"{k} state{'s' * (k != 1)}", "p": f"{p} column{'s' * (p != 1)} of X"}
        why = " and ".join(words[axis] for axis in sorted(set(SHAPES[name])))
        raise SpecError(f"{name} has shape {array.shape}; for {why} it must be {shape}.")
    if not np.isfinite(array).all():
        raise SpecError(f"{name} has the value {array[~np.isfinite(array)][0]}; all its values must be finite.")
    return _covariance(name, array) if square else array


def read_learn(learn: Any, given: Mapping[str, np.ndarray | None]) -> frozenset[str]:
    """Which matrices EM learns: those named, or by default those not given (offsets of x go with `observation`).

    >>> sorted(read_learn(None, dict.fromkeys(System._fields) | {"transition": 1, "observation": 1, "initial_mean": 0}))
    ['initial_covariance', 'observation_covariance', 'transition_covariance']
    """
    if learn is None:
        names = {name for name in System._fields if given[name] is None} - {"transition_offset"}
        return frozenset(names if given["observation"] is None else names - {"observation_offset"})
    names = {learn} if isinstance(learn, str) else set(learn)
    strange = sorted(str(name) for name in names if name not in System._fields)
    if strange:
        raise SpecError(f"KalmanFilter(learn=…) names {strange[0]!r}; it can name {', '.join(System._fields)}.")
    return frozenset(names)


def _covariance(name: str, array: np.ndarray) -> np.ndarray:
    """The array, if it is symmetric and has no negative eigenvalue."""
    size = np.abs(array).max(initial=0.0)
    difference = np.abs(array - array.T)
    if difference.max(initial=0.0) > 1e-8 * size:
        i, j = (int(place) for place in np.unravel_index(difference.argmax(), array.shape))
        raise SpecError(
            f"{name} is not symmetric: {array[i, j]:.6g} at ({i}, {j}), but {array[j, i]:.6g} at ({j}, {i})."
        )
    array = (array + array.T) / 2
    least = float(np.linalg.eigvalsh(array)[0])
    if least < -1e-10 * size:
        raise SpecError(
            f"{name} is not a covariance: its smallest eigenvalue is {least:.6g}, and none may be negative."
        )
    return array


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of what may be none, or no array at all: `read_matrix` says so then."""
    try:
        return tuple(np.shape(value))
    except ValueError:
        return ()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
