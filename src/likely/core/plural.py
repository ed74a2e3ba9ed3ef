"""Numbers of things in messages: 1 row, 2 rows."""

from __future__ import annotations

__all__ = ["counted", "verb"]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, in the plural unless the number is 1.

    >>> counted(1, "row"), counted(0, "row"), counted(2, "category", "categories")
    ('1 row', '0 rows', '2 categories')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def verb(number: int, one: str, many: str) -> str:
    """The verb that agrees with a number.

    >>> verb(1, "is", "are"), verb(3, "becomes", "become")
    ('is', 'become')
    """
    return one if number == 1 else many
