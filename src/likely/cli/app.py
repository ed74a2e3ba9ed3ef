"""The Typer application. A command's file holds what it does; heavy imports wait until a command runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ..core.version import __version__
from .compare import compare
from .decode import decode
from .detect import detect
from .evaluate import evaluate
from .fit import fit
from .forecast import forecast
from .impute import impute
from .list_specs import list_specs
from .output import guarded
from .predict import predict
from .sample import sample
from .segment import segment
from .show import show

__all__ = ["app"]

app = typer.Typer(
    name="likely",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=(
        "Fit probability models to tables and ask them questions.\n\n"
        "Tables are CSV, TSV or Parquet files. A model has four parts, each written like a call: a likelihood "
        '(`student_t()`), a network (`"mlp(hidden=[64,64])"`), a prior (`"normal(scale=1.0)"`) and an inference '
        '(`"ensemble(members=5)"`). `likely list` shows them all.'
    ),
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"likely {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit,
    "predict": predict,
    "evaluate": evaluate,
    "compare": compare,
    "sample": sample,
    "impute": impute,
    "decode": decode,
    "detect": detect,
    "segment": segment,
    "forecast": forecast,
    "show": show,
    "list": list_specs,
}

for name, command in COMMANDS.items():
    app.command(name)(guarded(command))
