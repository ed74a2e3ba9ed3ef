"""Rows shared among threads: each goes through its part block by block, as one process of several would.

Operations on blocks that fit into a cache are too short to be split further: torch's own threads would wait for each
other after every one of them, and for a busy machine still longer.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["by_threads"]

T = TypeVar("T")

LEAST = 16_384
"""Rows that are worth a thread."""


def by_threads(work: Callable[[slice], T], rows: slice, *, most: int | None = None) -> list[T]:
    """`work` of contiguous parts of the rows, in order; as many parts as torch has threads, or `most`.

    >>> by_threads(lambda rows: rows.stop - rows.start, slice(0, 10))
    [10]
    """
    threads = torch.get_num_threads()
    count = max(1, min(threads if most is None else min(threads, most), (rows.stop - rows.start) // LEAST))
    if count == 1:
        return [work(rows)]
    size = rows.stop - rows.start
    parts = [slice(rows.start + size * i // count, rows.start + size * (i + 1) // count) for i in range(count)]
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, parts))
    finally:
        torch.set_num_threads(threads)
