"""Warnings of other libraries that say nothing to our users, left unsaid: in the thread that asks, and in no other.

`warnings.catch_warnings` exchanges the filters of the whole process: two threads that enter and leave it by turns leave
the filters of one of them behind for good. Here a filter is added whose pattern matches in its own thread only, and for
as long as it is open; filters of the user, and of other threads, stay as they are.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

__all__ = ["quiet"]


class _Own:
    """A pattern of messages that only one thread's match, until it is closed."""

    def __init__(self, beginning: str) -> None:
        self._pattern = re.compile(re.escape(beginning), re.IGNORECASE)
        self._thread: int | None = threading.get_ident()

    def match(self, message: str) -> Any:
        """As a compiled pattern would answer."""
        return self._pattern.match(message) if threading.get_ident() == self._thread else None

    @property
    def pattern(self) -> str:
        """For those who copy filters to other threads, as scikit-learn does: there it matches nothing."""
        return r"(?!)"

    def close(self) -> None:
        self._thread = None  # a copy of the filters, which another thread may have taken meanwhile, is harmless


@contextmanager
def quiet(category: type[Warning], beginning: str = "") -> Iterator[None]:
    """Inside, warnings of this category whose message begins so are ignored, in this thread.

    >>> with quiet(UserWarning, "as expected"):
    ...     warnings.warn("as expected, nothing moved", UserWarning)
    """
    own = _Own(beginning)
    filters = cast("list[Any]", warnings.filters)
    entry = ("ignore", own, category, None, 0)
    filters.insert(0, entry)
    try:
        yield
    finally:
        own.close()
        if entry in filters:  # unless somebody has reset them
            filters.remove(entry)
