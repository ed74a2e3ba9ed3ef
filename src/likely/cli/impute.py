"""`likely impute`: fill the gaps of a table by a model of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import DataError
from .options import JsonOption, ModelArgument, RandomStateOption, TableArgument, check_out
from .output import lines, print_json
from .predict import ENDINGS, give, write_table
from .reading import read, reads_tables

__all__ = ["impute"]


@reads_tables
def impute(
    model: ModelArgument,
    table: TableArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the table (.csv, .tsv, .parquet).")
    ] = None,
    draw: Annotated[
        bool, typer.Option("--draw", help="Fill by a draw given the rest of the row, not by the mean or likeliest.")
    ] = False,
    random_state: RandomStateOption = 0,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Fill the gaps of TABLE by MODEL, a model of its rows; columns that the model does not have stay as they are.

    Without --out, a terminal shows the first rows and a pipe gets all of them as CSV.
    """
    from .. import load
    from ..models import FrameModel

    check_out(out, ENDINGS)
    fitted = load(model)
    if not isinstance(fitted, FrameModel) or not hasattr(fitted.model_, "impute"):
        inner = type(fitted.model_ if isinstance(fitted, FrameModel) else fitted).__name__
        raise DataError(
            f"{model} holds a {inner}, which cannot impute missing values; fit a model of the rows: likely fit --model."
        )
    rows = read(table, reading, fitted)
    filled = fitted.impute(rows, draws=1, random_state=random_state)[0] if draw else fitted.impute(rows)
    names = [column.name for column in fitted.coded_]
    gaps = sum(rows[name].is_null().sum() for name in names)
    whole = rows.with_columns(*(filled[name] for name in names))
    if out is not None:
        write_table(whole, out)
    if json:
        print_json({"model": str(model), "rows": whole.height, "filled": gaps, "table": whole.to_dicts()})
    elif out is not None:
        lines({"filled": f"{gaps} gaps in {whole.height} rows of {', '.join(names)}", "saved": str(out)})
    else:
        give(whole)
