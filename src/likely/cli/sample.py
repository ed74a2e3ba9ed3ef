"""`likely sample`: new rows from a model of rows, or new targets from a model of a target."""

from __future__ import annotations

import datetime as dt
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError
from ..data.frame import some
from .options import JsonOption, ModelArgument, RandomStateOption, check_out
from .output import lines, print_json
from .predict import ENDINGS, give, write_table
from .reading import reads_tables

if TYPE_CHECKING:
    import polars as pl

    from ..core.estimator import Estimator
    from ..models import FrameModel

__all__ = ["sample"]


@reads_tables
def sample(
    model: ModelArgument,
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", help="For a model of a target: the rows to draw targets for."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", "-n", metavar="NUMBER", help="How many draws: 10 rows, or one text.", min=1),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", metavar="COLUMN=VALUE", help="Hold a column of new rows at a value; may be repeated."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="Of language: how the texts begin.")
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", metavar="TOKENS", help="Of language: how long they go on, at most.", min=1)
    ] = None,
    decoding: Annotated[
        str | None,
        typer.Option("--decoding", metavar="SPEC", help="Of language: `sample(temperature=0.8)`, `greedy()` …"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the draws (.csv, .tsv, .parquet).")
    ] = None,
    random_state: RandomStateOption = 0,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Draw from MODEL: new rows, new text, or, for a model of a target, new targets for each row of TABLE.

    Without --out, a terminal shows the first rows and a pipe gets all of them as CSV.
    """
    from .. import load
    from ..models import LanguageModel

    check_out(out, ENDINGS)
    fitted = load(model)
    told: dict[str, Any] = {"prompt": prompt, "length": length, "decoding": decoding}
    given = {name: value for name, value in told.items() if value is not None}
    if isinstance(fitted, LanguageModel):
        if table is not None or fix:
            raise DataError(f"{model} is a model of language: it takes --prompt, and no TABLE or --fix.")
        _write(fitted.sample(rows or 1, **given, random_state=random_state), out, json)
        return
    if given:
        raise DataError(f"--{next(iter(given))} is for models of language; {model} holds a {type(fitted).__name__}.")
    drawn = _draw(fitted, model, table, rows or 10, fix, random_state, reading)
    if out is not None:
        write_table(drawn, out)
    if json:
        print_json({"model": str(model), "rows": drawn.height, "draws": drawn.to_dicts()})
    elif out is not None:
        lines({"drew": f"{drawn.height} rows of {', '.join(drawn.columns)}", "saved": str(out)})
    else:
        give(drawn)


def _write(texts: list[str], out: Path | None, json: bool) -> None:
    """Texts as they are, one after the other, or as the column of a table."""
    import polars as pl

    if out is not None:
        write_table(pl.DataFrame({"text": texts}), out)
    if json:
        print_json({"texts": texts})
    elif out is not None:
        lines({"drew": f"{len(texts)} text{'s' * (len(texts) != 1)}", "saved": str(out)})
    else:
        sys.stdout.write("\n\n".join(texts) + "\n")


def _draw(
    fitted: Estimator,
    source: Path,
    table: Path | None,
    rows: int,
    fix: list[str] | None,
    random_state: int,
    reading: Any,
) -> pl.DataFrame:
    import polars as pl

    from ..models import FrameModel, TableModel
    from .texts import read_rows

    if isinstance(fitted, FrameModel):
        if table is not None:
            raise DataError(f"{source} is a model of rows: it generates rows; do not pass a TABLE.")
        return fitted.sample(rows, _fixed(fitted, fix), random_state, return_hidden=True)
    if isinstance(fitted, TableModel):
        if fix:
            raise DataError(f"--fix holds columns of new rows; {source} takes them from TABLE.")
        if table is None:
            raise DataError(
                f"{source} is a model of {fitted.target!r} given other columns; give the TABLE that has them."
            )
        given = read_rows(table, fitted, reading)
        draws = fitted.sample(given, rows, random_state=random_state)
        columns = {"row": list(range(given.height)) * rows, fitted.target: draws.reshape(-1)}
        return pl.DataFrame(columns)
    raise DataError(f"{source} holds a {type(fitted).__name__}, which takes arrays; fit it with `likely fit`.")


def _fixed(fitted: FrameModel, fix: list[str] | None) -> dict[str, Any] | None:
    """What COLUMN=VALUE say: numbers where the column has numbers, dates where it has dates."""
    from ..data.coded import DATES

    kinds = {column.name: "date" if column.dtype in DATES else column.kind for column in fitted.coded_}
    held: dict[str, Any] = {}
    for text in fix or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise DataError(f"--fix {text!r} must be COLUMN=VALUE, such as --fix {next(iter(kinds))}=…")
        if name not in kinds:
            known = get_close_matches(name, kinds, n=1)
            hint = f" Did you mean {known[0]!r}?" if known else ""
            raise DataError(f"--fix {text!r}: the model has no column {name!r}.{hint} It has {some(kinds)}.")
        held[name] = value if kinds[name] == "category" else _number(value, text, kinds[name])
    return held or None


def _number(value: str, text: str, kind: str) -> float | bool | dt.datetime:
    words = {"true": True, "false": False}
    try:
        if kind == "date":
            return dt.datetime.fromisoformat(value)
        return words[value.lower()] if value.lower() in words else float(value)
    except ValueError:
        raise DataError(f"--fix {text!r}: the column has {kind}s, and {value!r} is not one.") from None
