"""What every `sample` shares: how many draws, from which seed, in which form; and how a model says that it has none."""

from __future__ import annotations

import sys
from typing import Any, Literal, NoReturn

import numpy as np

from .errors import DataError

__all__ = ["Form", "Refused", "count_of", "form_of", "in_form"]

Form = Literal["array", "pandas", "polars"]


def count_of(n: Any, name: str = "n") -> int:
    """How many are asked for: an integer above 0.

    >>> count_of(3)
    3
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise DataError(f"{name}={n!r}: how many to draw must be an integer above 0.")
    return int(n)


def form_of(X: Any) -> Form:
    """What kind of table X is: a frame of pandas or polars, or anything that becomes an array.

    >>> form_of([[1.0, 2.0]])
    'array'
    """
    for library in ("pandas", "polars"):
        frame = getattr(sys.modules.get(library), "DataFrame", None)  # a frame's library has been imported by its owner
        if frame is not None and isinstance(X, frame):
            return library  # type: ignore[return-value]
    return "array"


def in_form(rows: np.ndarray, form: str, names: Any = None) -> Any:
    """Rows (n, d) as the kind of table that `form_of` told, with these columns.

    >>> in_form(np.eye(2), "array")
    array([[1., 0.],
           [0., 1.]])
    """
    if form == "pandas":
        import pandas as pd

        return pd.DataFrame(rows, columns=names)
    if form == "polars":
        import polars as pl

        columns = range(rows.shape[1]) if names is None else names
        return pl.DataFrame(rows, schema=[str(name) for name in columns], orient="row")
    return rows


class Refused:
    """An answer that a model does not have: asking for it is an `AttributeError` that says why, by name.

    So `hasattr(model, "log_prob")` tells whether a model has one.

    >>> class Nearest:
    ...     log_prob = Refused("distances are not a density")
    >>> hasattr(Nearest(), "log_prob")
    False
    >>> Nearest().log_prob
    Traceback (most recent call last):
    ...
    AttributeError: Nearest has no log_prob: distances are not a density
    """

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}: {self.why}")
