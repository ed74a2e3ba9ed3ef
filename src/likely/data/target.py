"""The target and the weights of a table: columns read as a model takes them, and the task that a target suggests."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw
import numpy as np

from ..core.errors import DataError
from .columns import as_numbers, as_text, kind_of
from .frame import column_of
from .text_values import read_written

__all__ = ["is_missing", "labels_of", "numbers_of", "range_of", "task_of", "weights_of"]

FEW = 5
"""Integers 0, 1, … or 1, 2, … up to this many different ones are taken for class codes."""


def is_missing(series: nw.Series[Any]) -> np.ndarray:
    """Where a column has no value; NaN is none."""
    missing = series.is_null()
    if series.dtype.is_float():
        missing = missing | series.is_nan().fill_null(True)
    return np.asarray(missing.to_numpy(), dtype=bool)


def numbers_of(target: nw.Series[Any], keep: np.ndarray | slice = slice(None)) -> np.ndarray:
    """The targets of a regression, float64, in the rows to keep (all by default); text such as `€ 5` is read."""
    target, _ = read_written(target)
    kind = kind_of(target)
    if kind in ("category", "date"):
        example = f" ({_example(target)})" if kind == "category" else ""
        raise DataError(
            f"Target column {target.name!r} holds {'text' if kind == 'category' else 'dates'}{example}; "
            "a regression needs numbers. For labels use a classifier."
        )
    return as_numbers(target)[keep]


def _example(text: nw.Series[Any]) -> str:
    """A value that is not a number: of a column that is nearly all numbers the one that spoils it, and where."""
    import polars as pl

    from .written import mostly_numbers, shown_at

    values = pl.Series(as_text(text).to_list(), dtype=pl.String)
    rows = mostly_numbers(values)
    return f"{shown_at(values, rows)}, counted from 0" if rows else f"for example {text.drop_nulls()[0]!r}"


def labels_of(target: nw.Series[Any], keep: np.ndarray) -> np.ndarray:
    """The labels of a classification in the rows to keep: text, booleans, or integers."""
    kind = kind_of(target)
    if kind in ("date", "duration"):
        raise DataError(f"Target column {target.name!r} holds {kind}s; a classification needs labels.")
    if kind == "category":
        return np.asarray(as_text(target).to_list(), dtype=object)[keep].astype(str)
    numbers = as_numbers(target)[keep]
    if kind == "boolean":
        return numbers.astype(bool)
    if (numbers != np.round(numbers)).any():
        row = int(np.flatnonzero(keep)[np.argmax(numbers != np.round(numbers))])
        raise DataError(
            f"Target column {target.name!r} has the number {as_numbers(target)[row]:g} (row {row}, counted from 0); "
            "class labels are text, booleans or integers. For quantities use a regressor."
        )
    return numbers.astype(np.int64)


def weights_of(rows: nw.DataFrame[Any], sample_weight: Any) -> np.ndarray | None:
    """Weights of the rows from an array or from a column that is named; None stays None."""
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, str):
        weight = np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != (len(rows),):
            raise DataError(f"sample_weight has shape {weight.shape} and the table has {len(rows)} rows.")
        return weight
    series = column_of(rows, sample_weight)
    if kind_of(series) not in ("number", "boolean"):
        raise DataError(f"Weight column {sample_weight!r} must hold numbers.")
    weight = as_numbers(series)
    bad = np.isnan(weight) | (weight < 0)
    if bad.any():
        row = int(np.argmax(bad))
        fault = "missing" if np.isnan(weight[row]) else "negative"
        raise DataError(
            f"Weight column {sample_weight!r} has a {fault} value (row {row}, counted from 0); weights are 0 or more."
        )
    return weight


def beside_of(rows: nw.DataFrame[Any], name: str, role: Literal["offset", "exposure"]) -> np.ndarray:
    """The numbers of a column that joins η as an offset or an exposure; every row needs one.

    >>> from likely.data.frame import as_frame
    >>> beside_of(as_frame({"years": [1.0, 2.5]}), "years", "exposure")
    array([1. , 2.5])
    """
    series, _ = read_written(column_of(rows, name, "The table"))
    if kind_of(series) not in ("number", "boolean"):
        raise DataError(f"Column {name!r}, the {role}, must hold numbers.")
    values = as_numbers(series)
    bad = ~np.isfinite(values) | ((values <= 0) if role == "exposure" else False)
    if bad.any():
        row = int(np.argmax(bad))
        value = "no value" if np.isnan(values[row]) else f"{values[row]:g}"
        meaning = "numbers above 0: for how long, or among how many" if role == "exposure" else "finite numbers"
        raise DataError(f"Column {name!r}, the {role}, has {value} at row {row} (counted from 0); it takes {meaning}.")
    return values


def task_of(target: nw.Series[Any]) -> tuple[Literal["regress", "classify"], str]:
    """What a target asks for, and why: text and booleans are labels, numbers are quantities, few integers codes.

    >>> from likely.data.frame import as_frame
    >>> task_of(as_frame({"species": ["setosa", "virginica"]})["species"])
    ('classify', 'it holds text')
    >>> task_of(as_frame({"price": [1.5, 2.5]})["price"])
    ('regress', 'it holds numbers')
    """
    kind = kind_of(target)
    if kind == "empty":
        raise DataError(f"Target column {target.name!r} has no value in any row.")
    if kind == "category":
        return "classify", "it holds text"
    if kind == "boolean":
        return "classify", "it holds booleans"
    if kind == "number" and target.dtype.is_integer():
        values = sorted(target.drop_nulls().unique().to_list())
        if len(values) <= FEW and values[0] in (0, 1) and values == list(range(values[0], values[0] + len(values))):
            return "classify", f"it holds only the integers {values[0]} to {values[-1]}, read as class codes"
        return "regress", f"it holds integers, {values[0]} to {values[-1]}"
    return "regress", "it holds numbers"


def range_of(values: np.ndarray) -> tuple[Literal["count", "fraction", "positive", "number"], str]:
    """What numbers can be, and why: counts start at 0 or 1, fractions lie strictly between 0 and 1.

    >>> range_of(np.array([0.0, 3.0, 1.0])), range_of(np.array([0.2, 0.7])), range_of(np.array([18.0, 2.5]))
    (('count', 'integers from 0 to 3'), ('fraction', 'numbers between 0 and 1'), ('positive', 'numbers above 0'))
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return "number", "no numbers"
    if (known == np.round(known)).all() and known.min() in (0.0, 1.0) and known.max() > 1:
        return "count", f"integers from {known.min():g} to {known.max():g}"
    if known.min() > 0 and known.max() < 1:
        return "fraction", "numbers between 0 and 1"
    if known.min() > 0:
        return "positive", "numbers above 0"
    return "number", "numbers of any sign" if known.min() < 0 else "numbers from 0 upwards"
