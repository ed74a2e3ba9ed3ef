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
    import numpy as np
    import polars as pl

    from ..evaluate import Leaderboard
    from ..models import TableModel

__all__ = ["candidates", "chosen", "compare", "families", "family_of", "leaderboard"]

NETWORK = {"network": "mlp(hidden=[32,32])", "prior": "normal(scale=1.0)"}
BOOSTING = "boosting"
OUTSIDE = "outside"
"""The part of a candidate that is not ours: the library it is from."""
MANY = 1.5
"""How many times more zeros than a Poisson of the same mean has abound."""
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
            help="A candidate: linear, ridge, robust, uneven, mlp, ensemble, a family that the target can have "
            "(poisson, gamma, beta, ordinal …), boosting (scikit-learn's), or parts such as `network=mlp(hidden=[64]), "
            "likelihood=student_t()`. May be repeated; by default all that suit the target.",
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

    A difference to the best of less than two standard errors is not evidence. Families that the target can have are
    among the candidates (of integers, probabilities of counts and densities of numbers compare), and scikit-learn's
    gradient boosting as an outside yardstick: its regression has no probabilities, so only its error compares.
    """
    rows = read(table, reading)
    task, why = read_target(rows, target, task)
    parts = chosen(candidates(task, rows, target) | {BOOSTING: {OUTSIDE: "scikit-learn"}}, model or [])
    board = leaderboard(
        rows, target, task, parts, folds=folds, random_state=random_state, ignore=ignore, category=category
    )
    if json:
        print_json({"table": str(table), "target": target, "task": task, "best": board.best, **board.to_dict()})
        return
    lines({"target": f"{target}: {task}, {why}"})
    print_board(board, f"{folds} folds of {table}; score: mean log p({target} | row), higher is better")
    columns = [("--ignore", name) for name in ignore or []] + [("--category", name) for name in category or []]
    ours = [entry.name for entry in board.entries if entry.error is None and OUTSIDE not in parts[entry.name]]
    if not ours:
        return
    if ours[0] != board.best:
        lines({"best": f"{board.best} is scikit-learn's, an outside yardstick; of Likely's models {ours[0]} is"})
    options = [*words_of(reading), *columns, *((f"--{axis}", text) for axis, text in parts[ours[0]].items())]
    words = ["likely", "fit", str(table), "--target", target, *(word for option in options for word in option)]
    lines({"next": shlex.join(words)})


def candidates(task: str, rows: pl.DataFrame, target: str) -> dict[str, dict[str, str]]:
    """The models that are compared when none are named, by the texts of their parts."""
    from ..data.frame import as_frame, column_of
    from ..data.target import numbers_of

    networks = {"mlp": NETWORK, "ensemble": NETWORK | {"inference": "ensemble()"}}
    series = column_of(as_frame(with_target(rows, target)), target)
    if task == "classify":
        several = series.dtype.is_integer() and series.n_unique() > 2  # codes, whose order is that of numbers
        ordered = {"ordinal": {"likelihood": "ordinal()"}} if several else {}
        return {"linear": {}, "ridge": {"prior": "normal(scale=1.0)"}, **ordered, **networks}
    values = numbers_of(series)
    spread = float(values.std()) or 1.0
    return {
        "linear": {},
        "ridge": {"prior": f"normal(scale={SHARE * spread:.3g})"},
        "robust": {"likelihood": "student_t()"},
        "uneven": {"likelihood": "normal(scale=input)"},
        **{name: {"likelihood": f"{name}()"} for name in families(values)},
        **networks,
    }


def families(values: np.ndarray) -> list[str]:
    """The likelihoods, besides those of any number, that a target with these values can have.

    >>> import numpy as np
    >>> families(np.array([0.0, 0.0, 0.0, 0.0, 5.0, 6.0])), families(np.array([1.5, 80.0])), families(np.array([-1.0]))
    (['poisson', 'negative_binomial', 'zero_inflated'], ['gamma', 'log_normal'], [])
    """
    import numpy as np

    from ..data.target import range_of

    kind, _ = range_of(values)
    if kind != "count":
        return {"positive": ["gamma", "log_normal"], "fraction": ["beta"]}.get(kind, [])
    known = values[np.isfinite(values)]
    abound = (known == 0).mean() > MANY * np.exp(-known.mean()) + 0.02
    return ["poisson", "negative_binomial", *(["zero_inflated"] if abound else [])]


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


def family_with_exposure(rows: pl.DataFrame, target: str) -> str:
    """The likelihood whose mean an exposure multiplies, for what the target can be."""
    import numpy as np

    from ..data.frame import as_frame, column_of
    from ..data.target import numbers_of

    values = numbers_of(column_of(as_frame(rows), target))
    known = values[np.isfinite(values)]
    if len(known) and known.min() >= 0 and (known == np.round(known)).all():
        return "poisson()"
    if not len(known) or known.min() <= 0:
        raise DataError(
            f"--exposure is of counts 0, 1, 2, … or of amounts above 0, and {target!r} is neither; choose a "
            "--likelihood whose mean is exp(η), or give --offset."
        )
    return "gamma()"


def family_of(model: TableModel, rows: pl.DataFrame, target: str, *, given: bool, exposure: str | None = None) -> str:
    """The likelihood of a fitted model, and why it is that one."""
    likelihood = repr(model.model_.likelihood_)
    if given:
        return f"{likelihood}, as asked for"
    if hasattr(model, "classes_"):
        return f"{likelihood}, since the target has {len(model.classes_)} classes"
    from ..data.frame import as_frame, column_of
    from ..data.target import numbers_of, range_of

    values = numbers_of(column_of(as_frame(rows), target))
    others, (_, why) = families(values), range_of(values)
    if exposure is not None:
        return f"{likelihood}, since the target has {why} and {exposure} multiplies its mean; --likelihood overrides"
    if not others:
        return f"{likelihood}, the usual one: the target has {why}"
    words = " or ".join([", ".join(others[:-1]), others[-1]] if len(others) > 1 else others)
    return (
        f"{likelihood}, the usual one; the target has {why}: --likelihood {words} may suit it better (likely compare)"
    )


def outside_model(
    task: str, target: str, *, ignore: list[str] | None, category: list[str] | None, random_state: int
) -> TableModel:
    """scikit-learn's histogram gradient boosting on the same columns: what a model should be measured against."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    from ..data import Table
    from ..models import TableModel

    kind = HistGradientBoostingClassifier if task == "classify" else HistGradientBoostingRegressor
    table = Table(ignore=tuple(ignore or ()), categories=tuple(category or ()), unseen="ignore")
    return TableModel(kind(random_state=random_state), target, table)


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
        name: outside_model(task, target, ignore=ignore, category=category, random_state=random_state)
        if OUTSIDE in own
        else build_model(
            task, own, target, ignore=ignore, category=category, unseen="ignore", random_state=random_state
        )
        for name, own in parts.items()
    }
    known = with_target(rows, target)
    if folds < 2:
        raise DataError(f"--folds {folds}: at least 2 are needed.")
    if known.height < 2 * folds:
        raise DataError(f"--folds {folds} needs at least {2 * folds} rows with a target; the table has {known.height}.")
    first = next(iter(models.values()))
    assert first.table is not None
    first.table.fit(known.drop(target))  # a table that `likely fit` refuses is refused, though folds of it would do
    values = first.targets(known)
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
