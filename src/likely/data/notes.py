"""What was read other than it stands there is said in one line, for all columns of a table together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core.errors import ReadingNote

__all__ = ["note", "read_as", "together"]

NAMED = 2
"""Columns that a note names where there are more than one beyond."""


class _Read(NamedTuple):
    example: str
    value: Any
    columns: list[str]


_gathered: ContextVar[dict[str, _Read] | None] = ContextVar("_gathered", default=None)


def note(message: str) -> None:
    """A `ReadingNote`."""
    warnings.warn(message, ReadingNote, stacklevel=2)


def read_as(kind: str, example: str, value: Any, column: str) -> None:
    """Say how the text of a column was read, by one of its values; columns of one kind `together` get one line.

    A value that stands there as it is read (2020-01-01) is nothing to say.
    """
    if str(value).startswith(example.strip().replace("T", " ")):
        return
    gathered = _gathered.get()
    if gathered is None:
        _tell(_Read(example, value, [column]))
    else:
        gathered.setdefault(kind, _Read(example, value, [])).columns.append(column)


@contextmanager
def together() -> Iterator[None]:
    """Inside, columns that are read in another form are gathered; at the end each kind is told once.

    >>> with warnings.catch_warnings(record=True) as notes, together():
    ...     warnings.simplefilter("always")
    ...     for column in ("price", "area", "tax", "fee"):
    ...         read_as("numbers", "52,353.57", 52353.57, column)
    >>> [str(one.message) for one in notes]
    ['read 52,353.57 as 52353.57 in `price`, `area` and 2 others.']
    """
    if _gathered.get() is not None:  # the outermost tells
        yield
        return
    gathered: dict[str, _Read] = {}
    token = _gathered.set(gathered)
    try:
        yield
    finally:
        _gathered.reset(token)
        for read in gathered.values():
            _tell(read)


def _tell(read: _Read) -> None:
    value = f"{read.value:.15g}" if isinstance(read.value, int | float) else str(read.value)
    note(f"read {read.example} as {value} in {_listed(read.columns)}.")


def _listed(columns: list[str]) -> str:
    """The column of the example first.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('`a`', '`a`, `b` and `c`')
    """
    *first, last = [f"`{column}`" for column in columns]
    if len(columns) > NAMED + 1:
        first, last = first[:NAMED], f"{len(columns) - NAMED} others"
    return f"{', '.join(first)} and {last}" if first else last
