"""Ctrl-C during long compiled calls.

Python looks at signals between steps of its own, and a compiled loop, a factorisation or a solver is one step, however
long it takes. A loop over rows is given them by blocks (`blocks`), which costs nothing and changes nothing. What has
to be one call (a recursion along one series, a factorisation) runs in a thread of its own while this one waits
(`interruptible`): an interrupt is raised at once, and the call ends by itself, heard by nobody.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch

__all__ = ["EIGEN", "LONG", "blocks", "interruptible"]

T = TypeVar("T")

EIGEN = 10.0
"""Multiply-adds of the eigenvalues and vectors of a symmetric matrix, for each entry of its cube."""
LONG = 1e9
"""Multiply-adds from which on a call is worth a thread that can be left: a few tenths of a second."""
GLANCE = 0.2
"""Seconds between two looks for a signal, on systems where waiting is not ended by one."""


def blocks(costs: np.ndarray, most: float) -> Iterator[tuple[int, int]]:
    """Consecutive items as (first, last + 1), each with costs of at most `most` together, or a single costlier item.

    >>> list(blocks(np.array([1, 1, 1, 9, 1]), 2))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ends = np.cumsum(costs, dtype=np.float64)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0.0
        last = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
        yield first, last
        first = last


def interruptible(work: float, call: Callable[..., T], *args: Any) -> T:
    """call(*args), which an interrupt need not wait for if it is `LONG` (in multiply-adds).

    The call must release the interpreter (as torch, numpy and loops compiled with nogil do), and must write only into
    what the caller drops when interrupted. It sees the context of this thread, and torch's mode of gradients.

    >>> interruptible(1e12, sum, [1, 2])
    3
    """
    if work < LONG or threading.current_thread() is not threading.main_thread():
        return call(*args)  # only the main thread is told of signals
    context, gradients = contextvars.copy_context(), torch.is_grad_enabled()
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with torch.set_grad_enabled(gradients):
                answers.append(context.run(call, *args))
        except BaseException as error:  # raised where the caller waits
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(GLANCE)
    if errors:
        raise errors[0]
    return answers[0]
