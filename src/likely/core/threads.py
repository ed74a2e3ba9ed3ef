"""How many threads a computation gets: as many as its single operations are worth, and never more than the user allows.

Threads that share an operation wait for each other at its end. Where an operation takes microseconds, that costs more
than it saves, and on a busy machine a hundred times as much: the one that is not running is waited for until it is its
turn. So the choice depends on the size of one operation, in multiply-adds, and on nothing else: not on the load, and
not on who calls, since sums by two threads differ from sums by one in their last bits.

The user's number is torch's (`torch.set_num_threads`, or `OMP_NUM_THREADS`). It is lowered while a computation runs and
put back after the last one: torch keeps it for the process, and a thread that is new takes what it finds.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

__all__ = ["Footprint", "available_threads", "by_threads", "factorisation", "footprint", "threads_for", "work_in_hand"]

T = TypeVar("T")

SPLIT = 1 << 24
"""Multiply-adds of one operation that are worth a second thread: about half a millisecond."""
ELEMENTWISE = 32
"""Multiply-adds that one exp, tanh or division takes the time of."""
PANEL = 32
"""Columns that a factorisation takes at a time, more or less."""
LEAST = 16_384
"""Rows that are worth a thread of their own."""

_lock = threading.Lock()
_inside = 0
"""Computations under way, in all threads."""
_allowed = 1
"""What the user allows, as it was when the first of them began."""


class _Own(threading.local):
    depth = 0
    work = 0.0
    limited = False  # a worker of `by_threads` is itself one of several


_own = _Own()


def available_threads() -> int:
    """How many threads the user allows; 1 inside a worker of `by_threads`.

    >>> available_threads() >= 1
    True
    """
    if _own.limited:
        return 1
    return _allowed if _inside else torch.get_num_threads()


@contextmanager
def threads_for(work: float) -> Iterator[int]:
    """Inside, torch uses one thread if operations have less than `SPLIT` multiply-adds, else what the user allows.

    >>> before = torch.get_num_threads()
    >>> with threads_for(100) as threads:
    ...     threads, torch.get_num_threads()
    (1, 1)
    >>> torch.get_num_threads() == before
    True
    """
    global _inside, _allowed
    with _lock:
        if not _inside:
            _allowed = torch.get_num_threads()
        _inside += 1
    before, nested, around = torch.get_num_threads(), _own.depth > 0, _own.work
    threads = available_threads() if work >= SPLIT else 1
    _own.depth += 1
    _own.work = work
    _use(threads, before)
    try:
        yield threads
    finally:
        _own.depth -= 1
        _own.work = around
        with _lock:
            _inside -= 1
            _use(before if nested else _allowed)


def work_in_hand() -> float:
    """The multiply-adds of one operation that the innermost `threads_for` was told of; 0 outside of all.

    >>> with threads_for(100):
    ...     work_in_hand()
    100
    """
    return _own.work


def _use(threads: int, now: int | None = None) -> None:
    if threads != (torch.get_num_threads() if now is None else now):
        torch.set_num_threads(threads)


def by_threads(work: Callable[[slice], T], rows: slice, *, most: int | None = None) -> list[T]:
    """`work` of contiguous parts of the rows, in order, each in a thread of its own that is not split further.

    There are as many parts as the user allows threads, or `most`; each has `LEAST` rows or more.

    >>> by_threads(lambda rows: rows.stop - rows.start, slice(0, 10))
    [10]
    """
    size, threads = rows.stop - rows.start, available_threads()
    count = max(1, min(threads if most is None else min(threads, most), size // LEAST))
    if count == 1 and size >= LEAST:  # one part by intent: torch may split what it does
        return [work(rows)]
    with threads_for(0):
        if count == 1:
            return [work(rows)]
        parts = [slice(rows.start + size * i // count, rows.start + size * (i + 1) // count) for i in range(count)]
        pool = ThreadPoolExecutor(count)
        try:
            answers = list(pool.map(_limited(work), parts))
        except BaseException:  # an interrupt does not wait for what the others still do
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
        return answers


def _limited(work: Callable[[slice], T]) -> Callable[[slice], T]:
    def alone(part: slice) -> T:
        _own.limited = True
        with threads_for(0):
            return work(part)

    return alone


def factorisation(size: int) -> float:
    """The work between two waits of a factorisation of so many rows and columns, which goes by panels of columns.

    >>> factorisation(500) < SPLIT < factorisation(2000)
    True
    """
    return PANEL * size**2


class Footprint(NamedTuple):
    """What one row costs in a module."""

    work: int
    """Multiply-adds of the largest single operation, or what its functions of single numbers are worth."""
    width: int
    """Numbers that the widest layer makes of it."""


@torch.no_grad()
def footprint(module: nn.Module, x: Any) -> Footprint:
    """What one row of x costs: measured on the layers' outputs and weights.

    A layer that goes step by step (`stepwise`) does as many operations as there are steps.

    >>> footprint(nn.Sequential(nn.Linear(3, 100), nn.ReLU(), nn.Linear(100, 2)), torch.zeros(5, 3))
    Footprint(work=3200, width=100)
    """
    rows, work, width = max(1, len(x)), [1.0], [1.0]

    def measure(layer: nn.Module, _: Any, out: Any) -> None:
        if isinstance(out, Tensor):
            stepwise = bool(getattr(layer, "stepwise", False))
            weights = [own for own in layer.parameters(recurse=stepwise) if own.ndim > 1]
            inputs = max((own.numel() / own.shape[0] for own in weights), default=float(ELEMENTWISE))
            inputs = max(inputs, float(ELEMENTWISE))  # what follows a small product costs more than it does
            steps = out.shape[1] if stepwise and out.ndim > 2 else 1
            width.append(out.numel() / rows)
            work.append(out.numel() * inputs / rows / steps)

    hooks = [layer.register_forward_hook(measure) for layer in module.modules()]
    try:
        module(x)
    finally:
        for hook in hooks:
            hook.remove()
    return Footprint(math.ceil(max(work)), math.ceil(max(width)))
