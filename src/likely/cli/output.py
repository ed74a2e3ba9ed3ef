"""What a person or a program sees: labelled lines and tables, JSON alone on standard output, errors in one line."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer

from ..core.errors import DataError, LikelyError, ReadingNote
from ..core.replacing import replacing

__all__ = [
    *("command", "guarded", "heading", "lines", "number", "print_board", "print_json", "print_table", "save_picture"),
    *("stopped", "warn"),
]

R = TypeVar("R")
LABEL = 10
"""Width of the labels before lines."""


def guarded(function: Callable[..., R]) -> Callable[..., R]:
    """A command whose user errors end in one line on standard error and exit code 2."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> R:
        with warnings.catch_warnings():
            warnings.showwarning = _each_once()
            try:
                return function(*args, **kwargs)
            except BrokenPipeError:  # the reader of our output has gone, as in `likely list | head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(0) from None
            except KeyboardInterrupt:
                stopped()
                raise typer.Exit(130) from None
            except (LikelyError, OSError) as error:
                _stderr("error", _message(error), "red")
                raise typer.Exit(2) from None

    return run


def _each_once() -> Callable[..., None]:
    """Shows a warning as one line, and a note on why a column is text once: a file and its table both tell it."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = str(message)
        key = text.split(":")[0] if text.startswith("`") else text
        if not issubclass(category, ReadingNote) or key not in told:
            warn(text, _label(category))
        told.add(key)

    return show


def stopped() -> None:
    """What Ctrl-C is answered by, in place of a traceback."""
    _stderr("stopped", "by the keyboard; no file was left half written", "red")


def save_picture(figure: Any, path: Path, dpi: int) -> None:
    """Draw beside the target and rename, so that there is never half a picture."""
    try:
        with replacing(path) as part:
            figure.savefig(part, dpi=dpi, format=path.suffix[1:].lower() or "png")
    except ValueError as error:  # an ending that is not a picture's
        raise DataError(f"Cannot write {path}: {error}.") from error


def heading(text: str) -> None:
    """A sentence above what follows."""
    _console().print(f"\n{text}", style="bold", soft_wrap=True)


def command(text: str) -> None:
    """A command as a person would type it."""
    _console().print(f"$ {text}", style="green", soft_wrap=True)


def lines(facts: Mapping[str, str]) -> None:
    """`label   text`, one line each."""
    from rich.text import Text

    console = _console()
    for label, text in facts.items():
        rest = text.replace("\n", "\n" + " " * LABEL)
        console.print(Text(f"{label:<{LABEL}}", "bold cyan") + Text(rest), soft_wrap=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> None:
    """A table; numbers stand right, text left."""
    from rich import box
    from rich.table import Table

    rows = [[number(value) for value in row] for row in rows]
    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        numeric = bool(rows) and all(_looks_numeric(row[i]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = _console()
    console.print(table)
    if note:
        console.print(note, style="dim", soft_wrap=True)


def print_board(board: Any, title: str) -> None:
    """A leaderboard under its title."""
    console = _console()
    console.print(title, style="bold", soft_wrap=True)
    console.print(board)


def print_json(value: Any) -> None:
    """JSON on standard output; what is not a finite number is null."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, indent=2) + "\n")


def number(value: Any) -> str:
    """Four digits that matter; text as it is.

    >>> number(1234.567), number(0.012345), number(3), number("Oslo")
    ('1235', '0.01235', '3', 'Oslo')
    """
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return str(value)
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    return f"{value:.0f}" if 1000 <= size < 1e7 else f"{value:.4g}"


def warn(message: str, label: str = "warning") -> None:
    """One line on standard error."""
    _stderr(label, " ".join(message.split()), "yellow" if label == "warning" else "cyan")


def _label(category: type[Warning]) -> str:
    return "note" if issubclass(category, ReadingNote) else "warning"


def _console(stderr: bool = False) -> Any:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, markup=False, highlight=False, width=None if stream.isatty() else 160)


def _stderr(label: str, message: str, style: str) -> None:
    from rich.text import Text

    _console(stderr=True).print(Text(f"{label}: ", f"bold {style}") + Text(message, style), soft_wrap=True)


def _message(error: Exception) -> str:
    if isinstance(error, LikelyError) or not isinstance(error, OSError) or error.strerror is None:
        return "\n".join(" ".join(line.split()) for line in re.split(r"\n(?=- )", str(error)))  # a line per column
    return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."


def _looks_numeric(text: str) -> bool:
    try:
        float(text.split(" ± ")[0] or 0)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
