"""Columns of a file that have no name: what spreadsheets leave at the right, and the row names that R and pandas write.

a,b,y,          an unnamed column without a value is left out
"",a,b          an unnamed first column with a different value in each row is the names of the rows: left out
"""

from __future__ import annotations

import polars as pl

from ..core.errors import DataError
from ..core.plural import counted
from .notes import note

__all__ = ["placeholders", "without_unnamed"]


def placeholders(names: list[str]) -> list[str]:
    """The names, with one for each column that has none, which no column has.

    >>> placeholders(["", "a", ""])
    ['\\x00unnamed 1', 'a', '\\x00unnamed 3']
    """
    return [name or f"\0unnamed {place}" for place, name in enumerate(names, 1)]


def without_unnamed(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """The frame without columns that have a placeholder for a name; an error where one of them holds data.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     without_unnamed(pl.DataFrame({"a": [1, 2], "\\x00unnamed 2": [None, None]}), "t.csv").columns
    ['a']
    """
    unnamed = [name for name in frame.columns if name.startswith("\0unnamed ")]
    if not unnamed:
        return frame
    empty = [name for name in unnamed if frame[name].null_count() == frame.height]
    held = [name for name in unnamed if name not in empty]
    if held and held[0] == frame.columns[0] and frame[held[0]].n_unique() == frame.height:
        shown = ", ".join(map(str, frame[held[0]].head(3))) + (", …" if frame.height > 3 else "")
        note(
            f"{source}: left out the first column, which has no name and another value in each row ({shown}): row "
            "names. Name it to keep it."
        )
        held = held[1:]
    if held:
        place = held[0].removeprefix("\0unnamed ")
        raise DataError(
            f"{source}: column {place} has no name, and holds {frame[held[0]].drop_nulls()[0]!r}; name it in the first "
            "line of the file, or delete it there."
        )
    if empty:
        note(f"{source}: left out {counted(len(empty), 'column')} without a name and without a value.")
    if len(unnamed) == frame.width:
        raise DataError(f"{source}: no column has a name; the first line must name the columns.")
    return frame.drop(unnamed)
