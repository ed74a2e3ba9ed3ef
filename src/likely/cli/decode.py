"""`likely decode`: the hidden states behind the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import DataError, SpecError
from .options import JsonOption, ModelArgument, TableArgument, check_out
from .output import lines, print_json
from .predict import (
    ENDINGS,
    SHOWN,
    beside,
    give,
    write_table,
)
from .reading import read, reads_tables

__all__ = ["decode"]


@reads_tables
def decode(
    model: ModelArgument,
    table: TableArgument,
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="METHOD", help="`viterbi`: the best path; `posterior`: the best state of each step."
        ),
    ] = "viterbi",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write rows and states (.csv, .tsv, .parquet)."),
    ] = None,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Say which hidden state each row of TABLE came from, and how probable that is.

    Without --out, a terminal shows the first rows and a pipe gets all of them as CSV.
    """
    import polars as pl

    from .. import load
    from ..models import FrameModel

    check_out(out, ENDINGS)
    if method not in ("viterbi", "posterior"):
        raise SpecError(f"--method {method!r}: method must be viterbi or posterior.")
    fitted = load(model)
    if not isinstance(fitted, FrameModel) or not hasattr(fitted.model_, "decode"):
        inner = type(fitted.model_ if isinstance(fitted, FrameModel) else fitted).__name__
        raise DataError(
            f"{model} holds a {inner}, which has no hidden states; fit one with "
            '`likely fit TABLE --model "hidden_markov(n_states=3)"`.'
        )
    rows = read(table, reading, fitted)
    states = fitted.decode(rows, method)
    probability = fitted.predict_proba(rows)
    columns: dict[str, Any] = {fitted.hidden_name: states, "probability": probability[range(rows.height), states]}
    answers = pl.DataFrame(columns)
    if out is not None:
        write_table(beside(rows, answers), out)
    if json:
        print_json({"model": str(model), "rows": rows.height, "states": answers.to_dicts()})
    elif out is not None:
        counts = answers[fitted.hidden_name].value_counts(sort=True).rows()
        shown = ", ".join(f"state {state}: {count}" for state, count in counts[:SHOWN])
        lines({"decoded": f"{rows.height} rows of {table} ({shown})", "saved": str(out)})
    else:
        give(answers.with_row_index("row") if sys.stdout.isatty() else answers)
