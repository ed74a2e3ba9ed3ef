"""How a command reads its table: five options, which every command that takes one has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from ..data.reading import Reading

__all__ = ["read", "read_kept", "reads_tables", "words_of"]

PANEL = "How the table is written (found out where it is not said)"


def _option(name: str, metavar: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}", metavar=metavar, help=text, rich_help_panel=PANEL, show_default=False
    )
    return option


OPTIONS: dict[str, Any] = {
    "separator": Annotated[str | None, _option("separator", "MARK", "What parts fields, such as `;` or `tab`.")],
    "decimal": Annotated[str | None, _option("decimal", "MARK", "What parts decimals, a point or a comma.")],
    "thousands": Annotated[
        str | None, _option("thousands", "MARK", "What parts thousands: a comma, a point, `'` or a blank.")
    ],
    "encoding": Annotated[str | None, _option("encoding", "NAME", "Such as `utf-8`, `utf-16`, `latin-1`.")],
    "missing": Annotated[
        list[str] | None, _option("missing", "WORD", "A word that stands for a missing value. May be repeated.")
    ],
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the five options, which it gets as one value named `reading`."""

    @functools.wraps(command)
    def run(*args: Any, missing: list[str] | None = None, **kwargs: Any) -> None:
        from ..data.reading import Reading

        told: dict[str, Any] = {name: kwargs.pop(name, None) for name in OPTIONS if name != "missing"}
        if told["separator"] in ("tab", "\\t"):
            told["separator"] = "\t"
        command(*args, reading=Reading(**told, missing=tuple(missing or ())), **kwargs)

    own = inspect.signature(command, eval_str=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in OPTIONS.items()]
    kept = [parameter for name, parameter in own.parameters.items() if name != "reading"]
    run.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *more]}
    return run


def read(path: Path, reading: Reading | None = None, model: Any = None) -> pl.DataFrame:
    """The table, read as told, and else as the table was that the model learned from."""
    return read_kept(path, reading, model)[0]


def read_kept(path: Path, reading: Reading | None = None, model: Any = None) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The table, and what is to be kept beside a model, so that later tables are read in the same way."""
    from ..data.notes import note
    from ..data.read import read_marked
    from ..data.reading import Reading

    told = reading or Reading()
    known = Reading.of(getattr(model, "reading_", {}))
    whole = told.over(known)
    if whole != told and not path.name.lower().endswith(".parquet"):
        taken = {name: value for name, value in known.given().items() if name not in told.given()}
        taken |= {f"decimal of {column}": mark for column, mark in taken.pop("decimals", {}).items()}
        shown = ", ".join(f"{name} {value!r}" for name, value in taken.items())
        note(f"{path} is read as the table of training was: {shown}.")
    rows, marks = read_marked(path, whole)
    return rows, marks.given()


def words_of(reading: Reading | None) -> list[tuple[str, str]]:
    """The options that say this reading again.

    >>> from likely.data.reading import Reading
    >>> words_of(Reading(decimal=",", missing=("none",)))
    [('--decimal', ','), ('--missing', 'none')]
    """
    told = reading.given() if reading is not None else {}
    return [
        (f"--{name}", word) for name, value in told.items() for word in (value if isinstance(value, list) else [value])
    ]
