"""`likely evaluate`: how good a saved model is on rows that have a target, or of rows themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..core.errors import DataError
from .options import (
    JsonOption,
    ModelArgument,
    TableArgument,
    UnseenOption,
    check_out,
    load_any,
    with_target,
)
from .output import lines, print_json, print_table, save_picture
from .reading import reads_tables

if TYPE_CHECKING:
    import polars as pl

    from ..models import TableModel

__all__ = ["classes_told", "evaluate", "measures"]

PICTURES = (".png", ".svg", ".pdf")


@reads_tables
def evaluate(
    model: ModelArgument,
    table: TableArgument,
    unseen: UnseenOption = "error",
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw which classes are taken for which, or predictions against targets (.png, .svg, .pdf).",
        ),
    ] = None,
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Score a model on the rows of TABLE: log score, errors, and how often its intervals hold the target.

    For a classifier: accuracy, area under the ROC curve, precision and recall, of each class too, and which classes are
    taken for which.

    A model of the rows themselves has the log score, of sequences also per step; without a log-probability, what else
    can be measured: how near reconstructions and centres of clusters are, or whether draws can be told from rows. A
    model of language has bits per character and perplexity.
    TABLE may be a folder of images by class, for a model that was fitted on one.
    """
    from sklearn.base import is_classifier

    from ..models import FrameModel, LanguageModel, TableModel
    from .images import image_measures, is_images, tell_measures
    from .row_measures import column_measures, row_measures
    from .texts import language_measures, read_rows

    check_out(plot, PICTURES, "--plot")
    if plot is not None and is_images(table):
        raise DataError("--plot draws predictions of the target of a table; for images use likely.plots.confusion.")
    if is_images(table):
        tell_measures(model, table, image_measures(model, table), json=json)
        return
    fitted = load_any(model, unseen)
    if plot is not None and not isinstance(fitted, TableModel):
        raise DataError(f"--plot draws predictions of a target; {model} has none.")
    if isinstance(fitted, LanguageModel):
        told = language_measures(fitted, table, reading)
        if json:
            print_json({"model": str(model), "table": str(table), **_values(told)})
            return
        listed = [(name, value, meaning) for name, (value, meaning) in told.items()]
        print_table(f"{model} on {table}", ["measure", "value", "meaning"], listed)
        return
    rows_only = isinstance(fitted, FrameModel)
    rows = read_rows(table, fitted, reading)
    result = row_measures(fitted, rows) if rows_only else measures(fitted, rows)
    if plot is not None:
        _draw(fitted, with_target(rows, fitted.target), plot)
    by_class = classes_told(fitted, rows) if is_classifier(fitted) else None
    by_column = column_measures(fitted, rows) if rows_only and _restores(fitted.model_) else None
    if json:
        target = {} if rows_only else {"target": fitted.target}
        more = {} if by_class is None else by_class._asdict()
        more |= {} if by_column is None else {"columns": by_column}
        print_json({"model": str(model), "table": str(table), **target, **_values(result), **more})
        return
    print_table(f"{model} on {table}", ["measure", "value", "meaning"], _with_errors(result))
    if by_column is not None:
        names = list(dict.fromkeys(name for own in by_column for name in own))
        print_table("each column, in its unit", names, [[own.get(name) for name in names] for own in by_column])
    if by_class is not None:
        names = ["class", "rows", "precision", "recall", "auc"]
        print_table("each class against the others", names, [tuple(own.values()) for own in by_class.classes])
        heads = [str(own["class"]) for own in by_class.classes]
        counts = [(head, *row) for head, row in zip(heads, by_class.confusion, strict=True)]
        print_table("actual by predicted", ["", *heads], counts)
    if plot is not None:
        lines({"saved": str(plot)})


class ClassesTold(NamedTuple):
    """Of each class its rows, precision, recall and area under the ROC curve; and [actual][predicted] counts."""

    classes: list[dict[str, Any]]
    confusion: list[list[int]]


def classes_told(model: TableModel, rows: pl.DataFrame) -> ClassesTold:
    """How well each class is told from the others. What has no rows to tell by is NaN."""
    import numpy as np
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support, roc_auc_score

    rows = with_target(rows, model.target)
    target, predicted, labels = model.targets(rows), model.predict(rows), list(model.classes_)
    probability = model.predict_proba(rows)
    options: dict[str, Any] = {"labels": labels, "zero_division": np.nan}
    precision, recall, _, count = precision_recall_fscore_support(target, predicted, **options)
    told = []
    for place, label in enumerate(labels):
        own = np.asarray(target == label)
        auc = roc_auc_score(own, probability[:, place]) if 0 < own.sum() < len(own) else np.nan
        numbers = {"precision": precision[place], "recall": recall[place], "auc": auc}
        told.append({"class": label, "rows": int(count[place]), **{k: float(v) for k, v in numbers.items()}})
    return ClassesTold(told, confusion_matrix(target, predicted, labels=labels).tolist())


def _draw(model: TableModel, rows: pl.DataFrame, path: Path) -> None:
    """The confusion matrix of a classifier, or predictions with intervals against what was there."""
    from matplotlib.figure import Figure
    from sklearn.base import is_classifier

    from .. import plots

    figure = Figure(figsize=(6.0, 5.2), layout="constrained")
    if is_classifier(model):
        plots.confusion(classes_told(model, rows).confusion, list(model.classes_), ax=figure.subplots())
    else:
        plots.predictions(model, rows, model.targets(rows), level=0.9, label=model.target, ax=figure.subplots())
    save_picture(figure, path, 150)


def measures(model: TableModel, rows: pl.DataFrame) -> dict[str, tuple[Any, str]]:
    """Each measure with its meaning in words. Rows without a target do not count."""
    import numpy as np
    from sklearn.base import is_classifier

    from .. import evaluate as metrics

    rows = with_target(rows, model.target)
    target = model.targets(rows)
    scores = model.log_prob(rows)
    spread = float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")
    result: dict[str, tuple[Any, str]] = {
        "rows": (rows.height, "with a target"),
        "log_score": (float(scores.mean()), "mean log p(target | row); higher is better"),
        "log_score_error": (spread, "its standard error over rows"),
    }
    predicted = model.predict(rows)
    if is_classifier(model):
        probability = model.predict_proba(rows)
        return result | {
            "accuracy": (metrics.accuracy(target, predicted), "fraction of rows whose most probable class is right"),
            **_means(classes_told(model, rows)),
            "brier": (metrics.brier(target, probability, list(model.classes_)), "squared error of the probabilities"),
        }
    lower, upper = model.predict_interval(rows, 0.9)
    inside = float(((lower <= target) & (target <= upper)).mean())
    return result | {
        "rmse": (metrics.rmse(target, predicted), f"typical error, in the unit of {model.target}"),
        "mae": (metrics.mae(target, predicted), "mean absolute error"),
        "r2": (metrics.r2(target, predicted), "fraction of the variance that is explained"),
        "coverage_90": (inside, "fraction of targets inside their 90 % interval"),
        "width_90": (float((upper - lower).mean()), "mean width of these intervals"),
    }


def _means(told: ClassesTold) -> dict[str, tuple[Any, str]]:
    """The mean over the classes that the rows have."""
    import numpy as np

    words = {
        "auc": "probability that a row of a class ranks above one of another; mean over classes",
        "precision": "fraction of rows predicted to be of a class that are; mean over classes",
        "recall": "fraction of rows of a class that are predicted to be; mean over classes",
    }
    numbers = {name: np.array([own[name] for own in told.classes]) for name in words}
    known = {name: own[~np.isnan(own)] for name, own in numbers.items()}
    return {name: (float(own.mean()) if len(own) else float("nan"), words[name]) for name, own in known.items()}


def _restores(model: Any) -> bool:
    """Whether a model is measured by its reconstructions."""
    return hasattr(model, "reconstruct") and not hasattr(model, "log_prob")


def _with_errors(result: dict[str, tuple[Any, str]]) -> list[tuple[str, Any, str]]:
    """Name, value and meaning; a value that has a standard error with ± it, and no line for that."""
    from ..evaluate.result import plus_minus

    listed = []
    for name, (value, meaning) in result.items():
        if not name.endswith("_error"):
            error = result.get(f"{name}_error")
            listed.append((name, value if error is None else plus_minus(value, error[0]), meaning))
    return listed


def _values(result: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    return {name: value for name, (value, _) in result.items()}
