"""What a fitted model holds, declared as data: the shape, dtype and range of each array, the kind of each value.

A file is data from elsewhere. What is read from it must fit what the estimator declares before anything computes with
it, since a compiled loop that trusts a shape would read or write memory that is not its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from .errors import ModelFileError

__all__ = [
    "AMOUNT",
    "ANY",
    "COUNT",
    "COUNTS",
    "COVARIANCE",
    "FINITE",
    "FIT",
    "FLAG",
    "FORM",
    "FRACTION",
    "HISTORY",
    "LIST",
    "NOT_NEGATIVE",
    "NUMBER",
    "NUMBERS",
    "POSITIVE",
    "SETTLED",
    "SIMPLEX",
    "SYMMETRIC",
    "TABLE",
    "TEXTS",
    "UNCHECKED",
    "Array",
    "Arrays",
    "Range",
    "Value",
    "Values",
    "check_arrays",
    "check_values",
    "match",
    "maybe",
    "one_of",
]

SLACK = 1e-6
"""How far rounding may take a sum of probabilities from 1, or a covariance from symmetry, relative to its size."""


@dataclass(frozen=True)
class Range:
    """What the numbers of an array must be, in words and as a test."""

    words: str
    holds: Callable[[np.ndarray], bool]


def _symmetric(matrix: np.ndarray) -> bool:
    if not np.isfinite(matrix).all() or matrix.diagonal().any():
        return False
    return bool(np.abs(matrix - matrix.T).max() <= 1e-12 * np.abs(matrix).max())


def _symmetric_positive(matrices: np.ndarray) -> bool:
    if not np.isfinite(matrices).all() or matrices.shape[-1] != matrices.shape[-2]:
        return False
    size = np.abs(matrices).max(initial=0.0)
    if np.abs(matrices - matrices.swapaxes(-1, -2)).max(initial=0.0) > SLACK * size:
        return False
    return bool(np.linalg.eigvalsh(matrices).min(initial=0.0) >= -SLACK * size)


UNCHECKED = Range("numbers of any kind", lambda a: True)
ANY = Range("numbers, infinity included", lambda a: not np.isnan(a).any())
FINITE = Range("finite", lambda a: bool(np.isfinite(a).all()))
NOT_NEGATIVE = Range("finite and not negative", lambda a: bool((np.isfinite(a) & (a >= 0)).all()))
POSITIVE = Range("finite and above 0", lambda a: bool((np.isfinite(a) & (a > 0)).all()))
FRACTION = Range("between 0 and 1", lambda a: bool(((a >= 0) & (a <= 1)).all()))
SIMPLEX = Range(
    "probabilities that sum to 1 along the last axis",
    lambda a: bool(np.isfinite(a).all() and (a >= 0).all() and (np.abs(a.sum(-1) - 1) <= SLACK).all()),
)
SYMMETRIC = Range("finite and symmetric, with a diagonal of 0", _symmetric)
COVARIANCE = Range("symmetric and positive semidefinite", _symmetric_positive)


@dataclass(frozen=True)
class Array:
    """One learned array. `shape` names its axes: "K D" is (K, D) with the same K and D wherever they are named.

    A number stands for itself, "*" for any size, "…" at the end for any further axes, and "N | N D" for either form.
    Named sizes are those that the estimator knows (its `_dimensions`), or else of the first array that has them.
    Integer entries are from 0 and less than the size named by `below`. Axes are at least 1 long, unless `empty`.
    """

    shape: str
    range: Range = FINITE
    dtype: str | tuple[str, ...] = "float64"
    below: str | None = None
    optional: bool = False
    empty: bool = False


@dataclass(frozen=True)
class Value:
    """One learned value that is plain JSON: what it must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]
    optional: bool = False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


COUNT = Value("an integer from 0", _is_count)
NUMBER = Value("a number", _is_number)
AMOUNT = Value("a finite number from 0", lambda value: _is_number(value) and 0 <= value < math.inf)
FLAG = Value("true or false", lambda value: isinstance(value, bool))
COUNTS = Value("a list of integers from 0", lambda value: isinstance(value, list) and all(map(_is_count, value)))
NUMBERS = Value("a list of numbers", lambda value: isinstance(value, list) and all(map(_is_number, value)))
TEXTS = Value("a list of words", lambda value: isinstance(value, list) and all(isinstance(word, str) for word in value))
LIST = Value("a list", lambda value: isinstance(value, list))


def one_of(*words: str) -> Value:
    """One of these words.

    >>> one_of("array", "sparse").holds("dense")
    False
    """
    return Value(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


FORM = one_of("array", "pandas", "polars")
TABLE = Value("a table by name", lambda value: isinstance(value, dict))

Arrays = Mapping[str, Array]
Values = Mapping[str, Value]

Declaration = TypeVar("Declaration", Array, Value)


def maybe(declared: Declaration) -> Declaration:
    """The same, for what not every fit learns.

    >>> maybe(COUNT).optional
    True
    """
    return replace(declared, optional=True)


HISTORY = Array("*", ANY, optional=True, empty=True)
"""What a fit recorded step by step."""
SETTLED = Value("true, false or null", lambda value: value is None or isinstance(value, bool))
"""Whether an iterative fit converged; null where no rule says."""
FIT: Values = {"n_iter_": maybe(COUNT), "converged_": maybe(SETTLED), "log_likelihood_": maybe(NUMBER)}
"""How an iterative fit ended; a model that was made from known parameters has none of it."""


def check_arrays(
    declared: Arrays, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, Any], owner: str
) -> dict[str, int]:
    """All sizes by name, where every array is as it was declared; a `ModelFileError` names the first that is not.

    >>> check_arrays({"initial_": Array("K", SIMPLEX)}, {"initial_": np.array([0.5, 0.5])}, {}, "Chain")
    {'K': 2}
    >>> check_arrays({"initial_": Array("K", SIMPLEX)}, {"initial_": np.array([0.5, 0.5])}, {"K": 3}, "Chain")
    Traceback (most recent call last):
    likely.core.errors.ModelFileError: Chain's initial_ has shape (2,) in this file; it must be (K=3).
    """
    known: dict[str, int] = {}
    for name, size in sizes.items():
        if not _is_count(size) and not (isinstance(size, np.integer) and size >= 0):
            raise ModelFileError(f"{owner} cannot have {name}={_shown(size)}; it must be an integer from 0.")
        known[name] = int(size)
    for name, needs in declared.items():
        if name not in arrays:
            if not needs.optional:
                raise ModelFileError(f"The file does not hold what a fitted {owner} learned: {name} is missing.")
            continue
        _check_shape(f"{owner}'s {name}", needs, arrays[name], known)
    for name, needs in declared.items():  # ranges last: shapes are cheap to compare, and small where they fit
        if name in arrays:
            _check_entries(f"{owner}'s {name}", needs, arrays[name], known)
    return known


def check_values(declared: Values, values: Mapping[str, Any], owner: str) -> None:
    """Every value is of the kind that was declared; a `ModelFileError` names the first that is not.

    >>> check_values({"n_iter_": COUNT}, {"n_iter_": -1}, "Chain")
    Traceback (most recent call last):
    likely.core.errors.ModelFileError: Chain's n_iter_ is -1 in this file; it must be an integer from 0.
    """
    for name, needs in declared.items():
        if name not in values:
            if not needs.optional:
                raise ModelFileError(f"The file does not hold what a fitted {owner} learned: {name} is missing.")
        elif not needs.holds(values[name]):
            raise ModelFileError(f"{owner}'s {name} is {_shown(values[name])} in this file; it must be {needs.words}.")


def _check_shape(name: str, needs: Array, array: np.ndarray, known: dict[str, int]) -> None:
    allowed = (needs.dtype,) if isinstance(needs.dtype, str) else needs.dtype
    if str(array.dtype) not in allowed:
        raise ModelFileError(f"{name} holds {array.dtype} in this file; it must be {' or '.join(allowed)}.")
    for form in needs.shape.split("|"):
        if (sizes := match(form.split(), array.shape, known)) is not None:
            break
    else:
        forms = " or ".join(_written(form.split(), known) for form in needs.shape.split("|"))
        raise ModelFileError(f"{name} has shape {array.shape} in this file; it must be {forms}.")
    if 0 in array.shape and not needs.empty:
        raise ModelFileError(f"{name} is empty in this file: its shape is {array.shape}.")
    known.update(sizes)


def match(axes: list[str], shape: tuple[int, ...], known: Mapping[str, int]) -> dict[str, int] | None:
    """The sizes by name that a shape gives to its axes; None if it does not fit.

    >>> match(["K", "D"], (2, 3), {"K": 2}), match(["K", "K"], (2, 3), {})
    ({'K': 2, 'D': 3}, None)
    """
    more = axes[-1] == "…"
    axes = axes[:-1] if more else axes
    if len(shape) < len(axes) or (len(shape) > len(axes) and not more):
        return None
    sizes: dict[str, int] = {}
    for axis, size in zip(axes, shape, strict=False):
        if axis == "*":
            continue
        if size != (int(axis) if axis.isdigit() else known.get(axis, sizes.get(axis, size))):
            return None
        if not axis.isdigit():
            sizes[axis] = size
    return sizes


def _written(axes: list[str], known: Mapping[str, int]) -> str:
    return f"({', '.join(f'{axis}={known[axis]}' if axis in known else axis for axis in axes)})"


def _check_entries(name: str, needs: Array, array: np.ndarray, known: Mapping[str, int]) -> None:
    if array.dtype.kind == "f" and not needs.range.holds(array):
        raise ModelFileError(f"{name} has {_worst(array)} in this file; it must be {needs.range.words}.")
    if needs.below is not None and array.size and not (array.min() >= 0 and array.max() < known[needs.below]):
        most = known[needs.below] - 1
        raise ModelFileError(f"{name} has {_worst(array)} in this file; it must be integers from 0 to {most}.")


def _worst(array: np.ndarray) -> str:
    """What an array ranges over, for messages."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return "values that are not finite"
    return f"values from {array.min():g} to {array.max():g}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
