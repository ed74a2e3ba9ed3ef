"""Progress on long fits: a rich bar in a terminal, a plain line now and then in a pipe or a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from . import distributed

__all__ = ["Report", "progress"]

Report = Callable[..., None]
"""`report(done, **numbers)`: how many steps are done, and what to show beside the bar."""
EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def progress(title: str, total: int, *, show: bool) -> Iterator[Report]:
    """A function to call with the steps done so far; if `show`, it draws a bar, or writes lines without a terminal.

    Of several processes that fit together, only the first does.
    """
    if not show or sys.stderr is None or distributed.rank() != 0:
        yield lambda done, **numbers: None
        return
    if not sys.stderr.isatty():
        yield _lines(title, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, numbers="")

        def report(done: int, **numbers: float) -> None:
            bar.update(task, completed=done, numbers=_told(numbers))

        yield report


def _lines(title: str, total: int) -> Report:
    """Says how far a fit is, once in `EVERY` seconds: a short one says nothing."""
    begun = said = time.monotonic()

    def report(done: int, **numbers: float) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < EVERY:
            return
        said = now
        line = (f"{title}: {done} of {total}", _told(numbers), f"{now - begun:.0f} s")
        print("  ".join(filter(None, line)), file=sys.stderr, flush=True)

    return report


def _told(numbers: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in numbers.items())
