"""`likely compare`: which model suits a table, by cross-validated log score."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import DataError
from .options import (
    CategoryOption,
    IgnoreOption,
    JsonOption,
    SeedOption,
    TableArgument,
    TargetOption,
    TaskOption,
    build_model,
    parts_of,
    read_target,
    with_target,
)
from .output import lines, print_board, print_json

if TYPE_CHECKING:
    import polars as pl

    from ..evaluate import Leaderboard

__all__ = ["CANDIDATES", "chosen", "compare", "leaderboard"]

CANDIDATES: dict[str, dict[str, dict[str, str]]] = {
    "regress": {
        "linear": {},
        "ridge": {"prior": "normal(scale=1.0)"},
        "robust": {"likelihood": "student_t()"},
        "uneven": {"likelihood": "normal(scale=input)"},
        "mlp": {"network": "mlp(hidden=[32,32])", "prior": "normal(scale=1.0)"},
        "ensemble": {"network": "mlp(hidden=[32,32])", "prior": "normal(scale=1.0)", "inference": "ensemble()"},
    },
    "classify": {
        "linear": {},
        "ridge": {"prior": "normal(scale=1.0)"},
        "mlp": {"network": "mlp(hidden=[32,32])", "prior": "normal(scale=1.0)"},
        "ensemble": {"network": "mlp(hidden=[32,32])", "prior": "normal(scale=1.0)", "inference": "ensemble()"},
    },
}
"""The models that are compared when none are named."""


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
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Compare models on TABLE: each row is predicted by models that did not see it, and scored by log p(target | row).

    A difference to the best of less than two standard errors is no evidence.
    """
    from ..data import read_table

    rows = read_table(table)
    task, why = read_target(rows, target, task)
    candidates = chosen(task, model or [])
    board = leaderboard(rows, target, task, candidates, folds=folds, seed=seed, ignore=ignore, category=category)
    if json:
        print_json({"table": str(table), "target": target, "task": task, "best": board.best, **board.to_dict()})
        return
    lines({"target": f"{target}: {task}, since {why}"})
    print_board(board, f"{folds} folds of {table}; score: mean log p({target} | row), higher is better")
    best = " ".join(f'--{axis} "{text}"' for axis, text in candidates[board.best].items())
    lines({"next": f"likely fit {table} --target {target} {best}".rstrip()})


def chosen(task: str, texts: list[str]) -> dict[str, dict[str, str]]:
    """The candidates that were named, or all."""
    known = CANDIDATES[task]
    if not texts:
        return known
    return {text: known[text] if text in known else parts_of(text) for text in texts}


def leaderboard(
    rows: pl.DataFrame,
    target: str,
    task: str,
    candidates: dict[str, dict[str, str]],
    *,
    folds: int = 5,
    seed: int = 0,
    ignore: list[str] | None = None,
    category: list[str] | None = None,
) -> Leaderboard:
    """Cross-validate the candidates on the same folds. A level that a fold lacks counts as the most common one."""
    from .. import evaluate as evaluation
    from ..core.progress import progress

    models = {
        name: build_model(task, parts, target, ignore=ignore, category=category, unseen="ignore", seed=seed)
        for name, parts in candidates.items()
    }
    known = with_target(rows, target)
    if known.height < 2 * folds:
        raise DataError(
            f"--folds {folds}: {known.height} rows with a target are too few; at least {2 * folds} are needed."
        )
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

        return evaluation.compare(models, known, values, cv=folds, score=score, metrics=metric, random_state=seed)
