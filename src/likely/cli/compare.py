"""`likely compare`: which model suits a table, by cross-validated log score."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError, SpecError
from .options import (
    CategoryOption,
    IgnoreOption,
    JsonOption,
    RandomStateOption,
    TableArgument,
    TargetOption,
    TaskOption,
    build_model,
    parts_of,
    read_target,
    with_target,
)
from .output import lines, print_board, print_json
from .reading import read, reads_tables, words_of

if TYPE_CHECKING:
    import polars as pl

    from ..evaluate import Leaderboard

__all__ = ["candidates", "chosen", "compare", "leaderboard"]

NETWORK = {"network": "mlp(hidden=[32,32])", "prior": "normal(scale=1.0)"}
SHARE = 0.25
"""The ridge's prior belief: a column moves a target by about this fraction of the target's spread."""


@reads_tables
def compare(
    table: TableArgument,
    target: TargetOption,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            "--model",
            "-m",
            metavar="NAME|PARTS",
            help="A candidate: linear, ridge, robust, uneven, mlp, ensemble, or parts such as "
            "`network=mlp(hidden=[64]), likelihood=student_t()`. May be repeated; by default all that are named here.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", metavar="NUMBER", help="Folds of the cross-validation.")] = 5,
    task: TaskOption = "auto",
    ignore: IgnoreOption = None,
    category: CategoryOption = None,
    random_state: RandomStateOption = 0,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Compare models on TABLE: each row is predicted by models that did not see it, and scored by log p(target | row).

    A difference to the best of less than two standard errors is not evidence.
    """
    rows = read(table, reading)
    task, why = read_target(rows, target, task)
    parts = chosen(candidates(task, rows, target), model or [])
    board = leaderboard(
        rows, target, task, parts, folds=folds, random_state=random_state, ignore=ignore, category=category
    )
    if json:
        print_json({"table": str(table), "target": target, "task": task, "best": board.best, **board.to_dict()})
        return
    lines({"target": f"{target}: {task}, {why}"})
    print_board(board, f"{folds} folds of {table}; score: mean log p({target} | row), higher is better")
    columns = [("--ignore", name) for name in ignore or []] + [("--category", name) for name in category or []]
    options = [*words_of(reading), *columns, *((f"--{axis}", text) for axis, text in parts[board.best].items())]
    words = ["likely", "fit", str(table), "--target", target, *(word for option in options for word in option)]
    lines({"next": shlex.join(words)})


def candidates(task: str, rows: pl.DataFrame, target: str) -> dict[str, dict[str, str]]:
    """The models that are compared when none are named, by the texts of their parts."""
    networks = {"mlp": NETWORK, "ensemble": NETWORK | {"inference": "ensemble()"}}
    if task == "classify":
        return {"linear": {}, "ridge": {"prior": "normal(scale=1.0)"}, **networks}
    from ..data.frame import as_frame, column_of
    from ..data.target import numbers_of

    series = column_of(as_frame(with_target(rows, target)), target)
    spread = float(numbers_of(series).std()) or 1.0
    return {
        "linear": {},
        "ridge": {"prior": f"normal(scale={SHARE * spread:.3g})"},
        "robust": {"likelihood": "student_t()"},
        "uneven": {"likelihood": "normal(scale=input)"},
        **networks,
    }


def chosen(known: dict[str, dict[str, str]], texts: list[str]) -> dict[str, dict[str, str]]:
    """The candidates that were named, or all."""
    if not texts:
        return known
    unknown = [text for text in texts if text not in known and "=" not in text]
    if unknown:
        raise SpecError(
            f"--models {unknown[0]!r} is not one of {', '.join(known)}, nor parts such as network=mlp(hidden=[64])."
        )
    return {text: known[text] if text in known else parts_of(text) for text in texts}


def leaderboard(
    rows: pl.DataFrame,
    target: str,
    task: str,
    parts: dict[str, dict[str, str]],
    *,
    folds: int = 5,
    random_state: int = 0,
    ignore: list[str] | None = None,
    category: list[str] | None = None,
) -> Leaderboard:
    """Cross-validate the candidates on the same folds. A level that a fold lacks counts as the most common one."""
    from .. import evaluate as evaluation
    from ..core.progress import progress

    models = {
        name: build_model(
            task, own, target, ignore=ignore, category=category, unseen="ignore", random_state=random_state
        )
        for name, own in parts.items()
    }
    known = with_target(rows, target)
    if folds < 2:
        raise DataError(f"--folds {folds}: at least 2 are needed.")
    if known.height < 2 * folds:
        raise DataError(f"--folds {folds} needs at least {2 * folds} rows with a target; the table has {known.height}.")
    values = next(iter(models.values())).targets(known)
    metric: dict[str, Callable[[Any, Any], float]] = (
        {"accuracy": evaluation.accuracy} if task == "classify" else {"rmse": evaluation.rmse}
    )
    with progress("comparing", len(models) * folds, show=True) as report:
        done = 0

        def score(fitted: Any, X: Any, y: Any) -> Any:
            nonlocal done
            done += 1
            report(done)
            return evaluation.log_scores(fitted, X, y)

        return evaluation.compare(
            models, known, values, cv=folds, score=score, metrics=metric, random_state=random_state
        )
