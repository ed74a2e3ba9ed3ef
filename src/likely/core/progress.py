"""Progress on long fits: a rich bar in a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import distributed

__all__ = ["Report", "progress"]

Report = Callable[..., None]
"""`report(done, **numbers)`: how many steps are done, and what to show beside the bar."""


@contextmanager
def progress(title: str, total: int, *, show: bool) -> Iterator[Report]:
    """A function to call with the steps done so far; it draws a bar if `show` and standard error is a terminal.

    Of several processes that fit together, only the first draws.
    """
    if not (show and sys.stderr is not None and sys.stderr.isatty() and distributed.rank() == 0):
        yield lambda done, **numbers: None
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
            bar.update(task, completed=done, numbers="  ".join(f"{k} {v:.4g}" for k, v in numbers.items()))

        yield report
