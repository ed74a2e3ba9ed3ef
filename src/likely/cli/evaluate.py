"""`likely evaluate`: how good a saved model is on rows that have a target, or of rows themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import DataError
from .options import (
    JsonOption,
    ModelArgument,
    TableArgument,
    UnseenOption,
    load_any,
    with_target,
)
from .output import print_json, print_table
from .reading import reads_tables

if TYPE_CHECKING:
    import polars as pl

    from ..models import FrameModel, TableModel

__all__ = ["evaluate", "measures"]


@reads_tables
def evaluate(
    model: ModelArgument,
    table: TableArgument,
    unseen: UnseenOption = "error",
    json: JsonOption = False,
    *,
    reading: Any = None,
) -> None:
    """Score a model on the rows of TABLE: log score, errors, and how often its intervals hold the target.

    A model of the rows themselves has the log score alone, and one of language bits per character and perplexity.
    TABLE may be a folder of images by class, for a model that was fitted on one.
    """
    from ..models import FrameModel, LanguageModel
    from .images import image_measures, is_images, tell_measures
    from .texts import language_measures, read_rows

    if is_images(table):
        tell_measures(model, table, image_measures(model, table), json=json)
        return
    fitted = load_any(model, unseen)
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
    if json:
        target = {} if rows_only else {"target": fitted.target}
        print_json({"model": str(model), "table": str(table), **target, **_values(result)})
        return
    from ..evaluate.result import plus_minus

    error, _ = result.pop("log_score_error")
    listed = [(name, value, meaning) for name, (value, meaning) in result.items()]
    listed[1] = ("log_score", plus_minus(listed[1][1], error), listed[1][2])
    print_table(f"{model} on {table}", ["measure", "value", "meaning"], listed)


def row_measures(model: FrameModel, rows: pl.DataFrame) -> dict[str, tuple[Any, str]]:
    """The log score of rows, or of sequences, by a model of them."""
    import numpy as np

    if not hasattr(model.model_, "log_prob"):
        raise DataError(f"{type(model.model_).__name__} has no log-probability of rows to score them by.")
    scores = model.log_prob(rows)
    spread = float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")
    kind = {"exact": "", "bound": ", a lower bound", "estimate": ", an estimate"}[model.log_prob_kind_]
    return {
        "rows": (rows.height, "of the table"),
        "log_score": (float(scores.mean()), f"mean log p(row){kind}; higher is better"),
        "log_score_error": (spread, "its standard error"),
    }


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


def _values(result: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    return {name: value for name, (value, _) in result.items()}
