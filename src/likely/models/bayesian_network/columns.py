"""Tables of labels at the door: any table becomes a matrix of codes, a column for each variable, −1 for a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from torch import Tensor

from ...core.declared import one_of
from ...core.draws import form_of
from ...core.errors import DataError
from .dag import closest

__all__ = ["FORMS", "as_table", "column_names", "encode", "find_states", "form_of_columns", "read_columns"]

FORMS = one_of("columns", "records", "array", "pandas", "polars")

SHORT = 1000
"""Columns up to this length are looked up one value at a time: a query of polars costs as much as this many."""


def read_columns(X: Any, names: Sequence[str]) -> dict[str, pl.Series]:
    """The columns of X that are variables.

    X is a pandas or polars frame, a dict of columns, a list of dicts (a missing key is a missing value), or an array
    with one column for each of `names`, in their order. Other columns are left alone, unless one looks like a variable
    that is not there.

    >>> read_columns([{"rain": "yes"}, {"rain": "no", "wet": 1}], ["rain", "wet"])["wet"].to_list()
    [None, 1]
    """
    columns = {str(name): values for name, values in _columns(X, names).items()}
    absent = [name for name in names if name not in columns]
    for strange in (name for name in columns if name not in names):
        close = get_close_matches(strange.casefold(), [name.casefold() for name in absent], n=1, cutoff=0.8)
        if close:
            meant = next(name for name in absent if name.casefold() == close[0])
            raise DataError(f"X has a column {strange!r} but none of the name {meant!r}; is that what it should be?")
    variables = {name: _series(name, columns[name]) for name in names if name in columns}
    if not variables:
        raise DataError(f"X has none of the variables {', '.join(map(repr, names[:6]))} as a column.")
    lengths = {name: len(series) for name, series in variables.items()}
    if len(set(lengths.values())) > 1:
        few, many = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise DataError(
            f"X has {lengths[few]} values of {few!r} but {lengths[many]} of {many!r}; give as many of each."
        )
    if not next(iter(lengths.values())):
        raise DataError("X has no rows.")
    return variables


def column_names(X: Any) -> list[str]:
    """The names of all columns of X; those of an array are x0, x1, ….

    >>> column_names([{"rain": "yes"}, {"rain": "no", "wet": 1}])
    ['rain', 'wet']
    """
    array = X.detach().cpu().numpy() if isinstance(X, Tensor) else X
    if isinstance(array, np.ndarray) or (isinstance(X, list | tuple) and X and not isinstance(X[0], Mapping)):
        width = np.shape(array)[1] if np.ndim(array) == 2 else 0
        return [f"x{place}" for place in range(width)]
    return [str(name) for name in _columns(X, [])]


def form_of_columns(X: Any) -> str:
    """The kind of table that X is: one of `FORMS`.

    >>> form_of_columns({"rain": ["yes"]}), form_of_columns([{"rain": "yes"}])
    ('columns', 'records')
    """
    if isinstance(X, Mapping):
        return "columns"
    records = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)
    return "records" if records else form_of(X)


def as_table(columns: Mapping[str, np.ndarray], form: str) -> Any:
    """Columns as the kind of table that `form_of_columns` told.

    >>> as_table({"rain": np.array(["yes"])}, "records")
    [{'rain': 'yes'}]
    """
    if form == "columns":
        return dict(columns)
    if form == "records":
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]
    if form == "array":
        return np.stack(list(columns.values()), 1)
    if form == "polars":
        return pl.DataFrame(dict(columns))
    import pandas as pd

    return pd.DataFrame(dict(columns))


def find_states(series: pl.Series) -> list[Any]:
    """The different values of a column, sorted.

    >>> find_states(pl.Series("rain", ["yes", None, "no", "yes"]))
    ['no', 'yes']
    """
    return series.drop_nulls().unique().sort().to_list()


def encode(series: pl.Series, states: Sequence[Any]) -> np.ndarray:
    """Each value as the number of its state; a value that is not a state is refused, with its row.

    >>> encode(pl.Series("rain", ["yes", None, "no"]), ["no", "yes"])
    array([ 1, -1, 0])
    """
    number: dict[Any, int] = {state: place for place, state in enumerate(states)} | {None: -1}
    short = len(series) <= SHORT
    values = series.to_list() if short else series.unique().to_list()
    for value in values:
        if value not in number:
            row = series.to_list().index(value)
            raise DataError(f"X has {value!r} in column {series.name!r} (row {row}), no state.{closest(value, states)}")
    numbers = [number[value] for value in values]
    if short:
        return np.array(numbers, np.int64)
    codes = series.replace_strict(dict(zip(values, numbers, strict=True)), return_dtype=pl.Int64)
    return codes.fill_null(-1).to_numpy().astype(np.int64)


def _columns(X: Any, names: Sequence[str]) -> Mapping[Any, Any]:
    if isinstance(X, Mapping):
        return X
    if isinstance(X, Sequence) and X and all(isinstance(row, Mapping) for row in X):
        keys = dict.fromkeys(key for row in X for key in row)
        return {key: [row.get(key) for row in X] for key in keys}
    if isinstance(X, Tensor):
        X = X.detach().cpu().numpy()
    if isinstance(X, np.ndarray | list | tuple):
        try:
            array = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
        except ValueError as error:
            raise DataError(f"X has rows of different lengths ({error}).") from error
        if array.ndim != 2 or array.shape[1] != len(names):
            raise DataError(
                f"X has shape {array.shape}; an array needs one column for each of the {len(names)} variables, in the "
                f"order {', '.join(names[:6])}{', …' if len(names) > 6 else ''}. A table may name its columns instead."
            )
        return dict(zip(names, array.T, strict=True))
    try:
        frame = nw.from_native(X, eager_only=True)
    except (TypeError, nw.exceptions.DuplicateError) as error:
        kind = f"{type(X).__name__} ({str(error).splitlines()[0]})"
        raise DataError(
            f"X must be a table, a dict of columns, a list of dicts or an array; found a {kind}."
        ) from error
    return {column: frame[column] for column in frame.columns}


def _series(name: str, values: Any) -> pl.Series:
    """A column as text, integers, numbers or booleans, with nulls where values are missing."""
    if isinstance(values, nw.Series):
        native = values.to_native()
        if isinstance(native, pl.Series):
            values = native
        elif values.dtype in (nw.Categorical, nw.Enum):
            values = _of_categories(name, native)
        elif values.dtype == nw.String:
            texts = np.array(values.to_numpy(), dtype=object)
            texts[values.is_null().to_numpy()] = None
            values = pl.Series(name, texts.tolist(), dtype=pl.String)
        else:
            missing = values.is_null().to_numpy()
            values = [None if gap else value for gap, value in zip(missing, values.to_list(), strict=True)]
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise DataError(f"X: column {name!r} must be a list or an array of values; found {values!r}.")
    if not isinstance(values, pl.Series):
        values = _typed(name, values)
    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    if values.dtype.is_float():
        numbers = values.to_numpy().astype(np.float64)
        if np.isinf(numbers).any():
            raise DataError(f"X: column {name!r} holds infinity; states are text, finite numbers or booleans.")
        known = numbers[~np.isnan(numbers)]
        whole = (known == np.floor(known)).all() and (np.abs(known) < 2**53).all()
        values = pl.Series(name, numbers, nan_to_null=True)
        values = values.cast(pl.Int64) if whole else values  # pandas turns integers with gaps into floats
    if values.dtype not in (pl.String, pl.Boolean, pl.Null) and not values.dtype.is_numeric():
        raise DataError(f"X: column {name!r} holds {values.dtype}; states are text, numbers or booleans.")
    return values.rename(name)


def _of_categories(name: str, native: Any) -> pl.Series:
    """A pandas column of categories: its few levels are read, and put at their codes."""
    codes = native.cat.codes.to_numpy()
    levels = _typed(name, native.cat.categories.tolist())
    return levels.extend_constant(None, 1).gather(np.where(codes < 0, len(levels), codes)).rename(name)


def _typed(name: str, values: Any) -> pl.Series:
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufU" and values.ndim == 1:
        return pl.Series(name, values)
    plain = [_plain(value) for value in values]
    try:
        return pl.Series(name, plain, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        kinds = sorted({type(value).__name__ for value in plain if value is not None})
        raise DataError(f"X: column {name!r} mixes values of different types ({', '.join(kinds)}).") from None


def _plain(value: Any) -> Any:
    """A Python value; NaN is missing."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and value != value else value
