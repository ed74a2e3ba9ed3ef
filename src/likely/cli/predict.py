"""`likely predict`: what a saved model says of new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError
from ..core.replacing import replacing
from .options import (
    JsonOption,
    ModelArgument,
    TableArgument,
    UnseenOption,
    check_out,
    load_any,
)
from .output import lines, print_json, print_table
from .reading import reads_tables
from .rows import answers

if TYPE_CHECKING:
    import polars as pl

    from ..models import TableModel

__all__ = ["ENDINGS", "SHOWN", "beside", "give", "predict", "predictions", "tell", "write_table"]

ENDINGS = (".csv", ".tsv", ".parquet")
SHOWN = 10
"""Rows that a terminal shows; a file or a pipe gets all."""


@reads_tables
def predict(
    model: ModelArgument,
    table: TableArgument,
    interval: Annotated[
        float, typer.Option("--interval", metavar="LEVEL", help="The probability that the interval holds the target.")
    ] = 0.9,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write rows and predictions (.csv, .tsv, .parquet)."),
    ] = None,
    unseen: UnseenOption = "error",
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Predict the target of every row of TABLE: the mean with an interval, or the probability of each class.

    TABLE may be an image or a folder of images, for a model that was fitted on a folder of them by class.

    A model of rows (`--model` of `likely fit`) answers with the component or the latent code of each row.

    Without --out, a terminal shows the first rows and a pipe gets all of them as CSV.
    """
    from ..models import FrameModel, LanguageModel
    from .images import image_predictions, is_images
    from .texts import read_rows

    check_out(out, ENDINGS)
    if is_images(table):
        tell(image_predictions(model, table), f"images of {table}", model, out, json=json)
        return
    fitted = load_any(model, unseen)
    if isinstance(fitted, LanguageModel):
        raise DataError(f"{model} is a model of language, which goes on with a text: likely sample {model} --prompt …")
    rows = read_rows(table, fitted, reading)
    predicted = answers(fitted, rows) if isinstance(fitted, FrameModel) else predictions(fitted, rows, interval)
    if out is not None:
        write_table(beside(rows, predicted), out)
    if json:
        print_json({"model": str(model), "rows": rows.height, "predictions": predicted.to_dicts()})
    elif out is not None:
        columns = ", ".join(predicted.columns)
        lines({"predicted": f"{rows.height} rows of {table}: {columns}", "saved": str(out)})
    else:
        give(predicted.with_row_index("row") if sys.stdout.isatty() else predicted)


def tell(predicted: pl.DataFrame, what: str, model: Path, out: Path | None, *, json: bool) -> None:
    """Predictions into a file, as JSON, or on standard output."""
    if out is not None:
        write_table(predicted, out)
    if json:
        print_json({"model": str(model), "rows": predicted.height, "predictions": predicted.to_dicts()})
    elif out is not None:
        lines({"predicted": f"{predicted.height} {what}: {', '.join(predicted.columns)}", "saved": str(out)})
    else:
        give(predicted)


def predictions(model: TableModel, rows: pl.DataFrame, interval: float = 0.9) -> pl.DataFrame:
    """The prediction columns: `price_predicted`, `price_lower`, `price_upper`, or a probability for each class."""
    import polars as pl
    from sklearn.base import is_classifier

    if not 0 < interval < 1:
        raise DataError(f"--interval {interval:g} must lie strictly between 0 and 1, such as 0.9.")
    target = model.target
    columns: dict[str, Any] = {f"{target}_predicted": model.predict(rows)}
    if is_classifier(model):
        probability = model.predict_proba(rows)
        columns |= {f"{target}_p_{label}": probability[:, i] for i, label in enumerate(model.classes_)}
    else:
        columns[f"{target}_lower"], columns[f"{target}_upper"] = model.predict_interval(rows, interval)
    return pl.DataFrame(columns)


def give(frame: pl.DataFrame) -> None:
    """A table on standard output: its first rows in a terminal, all of it as CSV in a pipe."""
    if not sys.stdout.isatty():
        sys.stdout.write(frame.write_csv())
        return
    note = f"… {frame.height - SHOWN} rows more; --out FILE writes all." if frame.height > SHOWN else ""
    print_table("", frame.columns, frame.head(SHOWN).rows(), note)


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """CSV, TSV or Parquet by the ending; written beside the target and renamed, so never half a file."""
    try:
        with replacing(path) as part:
            if path.name.lower().endswith(".parquet"):
                frame.write_parquet(part)
            else:
                frame.write_csv(part, separator="\t" if path.name.lower().endswith(".tsv") else ",")
    except OSError as error:
        raise DataError(f"Cannot write {path}: {error.strerror or error}.") from error


def beside(rows: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """The rows with the answers as further columns."""
    both = [name for name in answers.columns if name in rows.columns]
    if both:
        raise DataError(f"The table has a column {both[0]!r} already; rename it, so that it is not mistaken for ours.")
    return rows.hstack(answers)
