"""Where the classes are that files name: rooms above tell it, so that those below can read files of theirs."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["find_model", "found_by"]

_FINDERS: list[Callable[[str], object]] = []


def found_by(find: Callable[[str], object]) -> None:
    """From now on, `find` is asked for models by name; it imports the file that defines one, if it knows it."""
    _FINDERS.append(find)


def find_model(name: str) -> None:
    """Import the file that defines the model of this name, if someone knows it.

    >>> find_model("Oracle")
    """
    for find in _FINDERS:
        find(name)
