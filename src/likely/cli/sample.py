"""`likely sample`: new rows from a model of rows, or new targets from a model of a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.errors import DataError
from .options import JsonOption, ModelArgument, RandomStateOption, check_out
from .output import lines, print_json
from .predict import ENDINGS, give, write_table

if TYPE_CHECKING:
    import polars as pl

    from ..core.estimator import Estimator

__all__ = ["sample"]


def sample(
    model: ModelArgument,
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", help="For a model of a target: the rows to draw targets for."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", "-n", metavar="NUMBER", help="How many draws.", min=1)] = 10,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the draws (.csv, .tsv, .parquet).")
    ] = None,
    random_state: RandomStateOption = 0,
    json: JsonOption = False,
) -> None:
    """Draw from MODEL: new rows, or, for a model of a target, new targets for each row of TABLE.

    Without --out, a terminal shows the first rows and a pipe gets all of them as CSV.
    """
    from .. import load

    check_out(out, ENDINGS)
    drawn = _draw(load(model), model, table, rows, random_state)
    if out is not None:
        write_table(drawn, out)
    if json:
        print_json({"model": str(model), "rows": drawn.height, "draws": drawn.to_dicts()})
    elif out is not None:
        lines({"drew": f"{drawn.height} rows of {', '.join(drawn.columns)}", "saved": str(out)})
    else:
        give(drawn)


def _draw(fitted: Estimator, source: Path, table: Path | None, rows: int, random_state: int) -> pl.DataFrame:
    import polars as pl

    from ..data import read_table
    from ..models import FrameModel, TableModel

    if isinstance(fitted, FrameModel):
        if table is not None:
            raise DataError(f"{source} is a model of rows: it makes rows of its own and takes no TABLE.")
        return fitted.sample(rows, random_state=random_state, return_hidden=True)
    if isinstance(fitted, TableModel):
        if table is None:
            raise DataError(
                f"{source} is a model of {fitted.target!r} given other columns; give the TABLE that has them."
            )
        given = read_table(table)
        draws = fitted.sample(given, rows, random_state=random_state)
        columns = {"row": list(range(given.height)) * rows, fitted.target: draws.reshape(-1)}
        return pl.DataFrame(columns)
    raise DataError(f"{source} holds a {type(fitted).__name__}, which takes arrays; fit it with `likely fit`.")
