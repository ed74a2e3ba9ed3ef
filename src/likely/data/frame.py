"""Tables in memory: any frame that narwhals takes (pandas, polars, pyarrow) or a dict of columns, through one door."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import narwhals as nw

from ..core.errors import DataError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["as_frame", "check_names", "column_of", "is_number", "some"]


def as_frame(data: Any, name: str = "frame") -> nw.DataFrame[Any]:
    """Any table as a narwhals frame whose columns have names of text, all different.

    >>> as_frame({"a": [1, 2], "b": ["x", "y"]}).columns
    ['a', 'b']
    """
    if isinstance(data, nw.DataFrame):
        return data
    if isinstance(data, Mapping):
        data = _from_columns(data, name)
    try:
        frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        check_names([str(column) for column in data.columns], name)
        raise
    except TypeError:
        raise DataError(
            f"{name} must be a table: a pandas or polars frame, or a dict of columns; found {_kind(data)}."
        ) from None
    check_names([str(column) for column in frame.columns], name)
    names = {column: str(column) for column in frame.columns if not isinstance(column, str)}
    return frame.rename(names) if names else frame


def _kind(data: Any) -> str:
    kind = type(data).__name__
    return f"a {kind} (call .collect() on it first)" if kind == "LazyFrame" else f"a {kind}"


def _from_columns(data: Mapping[Any, Any], name: str) -> pl.DataFrame:
    import polars as pl

    columns: dict[str, pl.Series] = {}
    for column, values in data.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise DataError(f"{name}: column {str(column)!r} must be a list or an array of values; found {values!r}.")
        try:
            columns[str(column)] = pl.Series(str(column), values)
        except (TypeError, pl.exceptions.PolarsError):
            raise DataError(f"{name}: column {str(column)!r} {_mixed(values)}") from None
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{name}: columns have different lengths ({some(f'{c}: {n}' for c, n in lengths.items())}).")
    return pl.DataFrame(columns)


def column_of(frame: nw.DataFrame[Any], column: str, name: str = "frame") -> nw.Series[Any]:
    """One column by name, or an error that says which are there and which one may have been meant."""
    if column not in frame.columns:
        by_fold = {known.casefold(): known for known in frame.columns}
        close = get_close_matches(column.casefold(), by_fold, n=1)
        hint = f" Did you mean {by_fold[close[0]]!r}?" if close else ""
        raise DataError(f"{name} has no column {column!r}.{hint} It has {some(frame.columns)}.")
    series = frame[column]
    return _typed(series) if series.dtype == nw.Object else series


def _typed(series: nw.Series[Any]) -> nw.Series[Any]:
    """A pandas column of Python objects as a column of one type."""
    import polars as pl

    values = [None if gap else value for value, gap in zip(series, series.is_null(), strict=True)]
    try:
        typed = pl.Series(str(series.name), values, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        typed = pl.Series(str(series.name), values, dtype=pl.Object)
    if typed.dtype == pl.Object:
        raise DataError(f"Column {series.name!r} {_mixed(values)}")
    return nw.from_native(typed, series_only=True)


def _mixed(values: Iterable[Any]) -> str:
    """What is wrong with a column of several types, and the first value of the rarest.

    >>> _mixed([400, 510, "8S0"])
    "mixes values of different types (int, str), such as '8S0' at row 2 (counted from 0); make them one."
    """
    rows = [(type(value).__name__, row, value) for row, value in enumerate(values) if value is not None]
    counts = Counter(kind for kind, _, _ in rows)
    _, row, value = min(rows, key=lambda own: counts[own[0]])
    return (
        f"mixes values of different types ({some(sorted(counts))}), such as {value!r} at row {row} (counted from 0); "
        "make them one."
    )


def check_names(names: list[str], source: str) -> None:
    """Refuse names that occur twice, are empty, or are numbers of a first data row."""
    counts = Counter(names)
    twice = [name for name, count in counts.items() if count > 1 and name]
    if twice:
        raise DataError(f"{source} has more than one column named {some(map(repr, twice))}; give each its own name.")
    if "" in counts:
        raise DataError(
            f"{source}: column {names.index('') + 1} has no name; name it, or leave it out if it only numbers the rows "
            "(pandas: to_csv(index=False))."
        )
    if any("." in name for name in names) and all(is_number(name) for name in names):
        raise DataError(f"{source}: the first line holds numbers ({some(names)}); it must name the columns.")


def is_number(text: str) -> bool:
    """Whether text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def some(items: Iterable[str], limit: int = 6) -> str:
    """The first few, for a message."""
    shown = list(items)
    return ", ".join(shown[:limit]) + (f", … ({len(shown)} in all)" if len(shown) > limit else "")
