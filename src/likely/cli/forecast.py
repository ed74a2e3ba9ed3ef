"""`likely forecast`: what follows a series, or several, in a table with dates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError
from .options import JsonOption, RandomStateOption, TableArgument, check_out
from .output import lines, print_json, save_picture
from .predict import ENDINGS, give, write_table
from .reading import read, reads_tables

if TYPE_CHECKING:
    import polars as pl

__all__ = ["forecast"]

PICTURES = (".png", ".svg", ".pdf")


@reads_tables
def forecast(
    table: TableArgument,
    target: Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to forecast.")],
    steps: Annotated[int, typer.Option("--steps", metavar="NUMBER", help="How many steps ahead.", min=1)],
    date: Annotated[str | None, typer.Option("--date", metavar="COLUMN", help="The column of dates or years.")] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="COLUMN", help="The column that tells several series apart.")
    ] = None,
    network: Annotated[
        str,
        typer.Option(
            "--network",
            metavar="SPEC",
            help="`linear()`, `mlp(hidden=[32])`, `naive()`, `seasonal_naive()`, `exponential_smoothing()`, …",
        ),
    ] = "linear()",
    likelihood: Annotated[str, typer.Option("--likelihood", metavar="SPEC", help="`normal()`, `poisson()`, …")] = (
        "normal()"
    ),
    season: Annotated[
        str, typer.Option("--season", metavar="STEPS", help="Steps of a season, `none`, or `auto`: from the dates.")
    ] = "auto",
    transform: Annotated[
        str, typer.Option("--transform", metavar="auto|none|log|sqrt", help="The scale that is modelled.")
    ] = "auto",
    interval: Annotated[
        float, typer.Option("--interval", metavar="LEVEL", help="The probability that the interval holds a step.")
    ] = 0.9,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the forecast (.csv, .tsv, .parquet).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the series and what follows (.png, .svg, .pdf).")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model-out", metavar="FILE", help="Keep the fitted model.")] = None,
    random_state: RandomStateOption = 0,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Forecast a column of TABLE: the mean of each of the next steps, and an interval.

    Without --out, a terminal shows the first steps and a pipe gets all of them as CSV.
    """
    from ..models import Forecaster

    check_out(out, ENDINGS)
    check_out(plot, PICTURES, "--plot")
    rows = read(table, reading)
    fitted = Forecaster(
        likelihood,
        network,
        season=_season(season),
        transform=transform,
        date=_column(rows, date, "--date"),
        target=_column(rows, target, "--target"),
        series=_column(rows, series, "--series"),
        random_state=random_state,
    ).fit(rows)
    if not 0 < interval < 1:
        raise DataError(f"--interval {interval:g} must lie strictly between 0 and 1, such as 0.9.")
    ahead = fitted.predict_frame(steps, interval)
    if out is not None:
        write_table(ahead, out)
    if model is not None:
        fitted.save(model)
    if plot is not None:
        _draw(fitted, steps, plot)
    facts = _facts(fitted, rows, table, target, steps)
    saved = {"saved": ", ".join(str(path) for path in (out, plot, model) if path is not None)}
    if json:
        print_json({"table": str(table), "steps": steps, **facts, "forecast": ahead.to_dicts()})
    elif out is not None:
        lines({**facts, **saved})
    else:
        give(ahead)


def _facts(fitted: Any, rows: pl.DataFrame, table: Path, target: str, steps: int) -> dict[str, str]:
    season = f"a season of {fitted.season_} steps" if fitted.season_ > 1 else "no season"
    scale = "as it is" if fitted.transform_ == "none" else f"on the scale of {fitted.transform_}"
    past = f"the last {max(fitted.lags_)} steps" if fitted.lags_ else "a hidden state"
    many = f" in {len(fitted.series_)} series" if len(fitted.series_) > 1 else ""
    return {
        "forecast": f"{steps} steps of {target} after {rows.height} rows of {table}{many}",
        "model": f"{fitted.network}: {past}, {season}, {scale}",
    }


def _season(text: str) -> Any:
    if text in ("auto", "none"):
        return None if text == "none" else text
    if not text.isdigit() or not int(text):
        raise DataError(f"--season {text!r} must be a number of steps, none or auto.")
    return int(text)


def _column(rows: pl.DataFrame, name: str | None, option: str) -> str | None:
    """The column of this name; capitals do not matter where only one column can be meant."""
    if name is None or name in rows.columns:
        return name
    alike = [column for column in rows.columns if column.casefold() == name.casefold()]
    if len(alike) == 1:
        return str(alike[0])
    raise DataError(f"{option} {name!r}: the table has no such column; it has {', '.join(rows.columns)}.")


def _draw(fitted: Any, steps: int, path: Path) -> None:
    from matplotlib.figure import Figure

    from ..plots import future

    figure = Figure(figsize=(7.6, 4.2), layout="constrained")
    future(fitted, steps, ax=figure.subplots())
    save_picture(figure, path, 150)
