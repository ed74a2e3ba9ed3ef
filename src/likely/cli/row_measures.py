"""How good a model of rows is on rows: what is measured depends on what the model can be asked.

a distribution      the log score of rows, or of sequences and their steps
an autoencoder      how near its reconstructions come
clusters            how near rows are to their centres, and how far from those of other clusters
what only draws     whether a classifier can tell its draws from the rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from ..models import FrameModel

__all__ = ["Measures", "column_measures", "row_measures"]

Measures = dict[str, tuple[Any, str]]
"""Each measure with its meaning in words; `log_score_error` is the standard error of `log_score`."""

MOST = 5000
"""Rows up to which every pair of them is compared."""
FEWEST = 80
"""Rows from which on the classifier test has both something to learn from and something to ask."""


def row_measures(model: FrameModel, rows: pl.DataFrame) -> Measures:
    """What can be measured of a model of rows, each with its meaning."""
    inner = model.model_
    count: Measures = {"rows": (rows.height, "of the table")}
    if hasattr(inner, "log_prob"):
        return count | _log_scores(model, rows)
    if hasattr(inner, "reconstruct"):
        return count | _reconstruction(column_measures(model, rows))
    if hasattr(inner, "cluster_centers_"):
        return count | _clusters(model, rows)
    if hasattr(inner, "sample"):
        return count | _draws(model, rows)
    raise DataError(
        f"{type(inner).__name__} has neither a log-probability of rows, nor clusters, reconstructions or draws to "
        "measure it by."
    )


def _log_scores(model: FrameModel, rows: pl.DataFrame) -> Measures:
    scores = model.log_prob(rows)
    error = float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")
    kind = {"exact": "", "bound": ", a lower bound", "estimate": ", an estimate"}[model.log_prob_kind_]
    if not model._sequential:
        return {
            "log_score": (float(scores.mean()), f"mean log p(row){kind}; higher is better"),
            "log_score_error": (error, "its standard error"),
        }
    return {
        "sequences": (len(scores), "of rows of the table, the steps, in their order"),
        "log_score": (float(scores.mean()), f"mean log p(sequence){kind}; higher is better"),
        "log_score_error": (error, "its standard error"),
        "log_score_per_step": (float(scores.sum() / rows.height), "the same per step: the sum over all rows / rows"),
    }


def column_measures(model: FrameModel, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Of each column how near its reconstruction comes: rmse and r2 of numbers, accuracy of labels."""
    from ..data.frame import as_frame, column_of

    given = as_frame(rows, "The table")
    restored = as_frame(model.model_.reconstruct(model._rows(given)))
    told = []
    for coded in model.coded_:
        actual, own = column_of(given, coded.name, "The table"), column_of(restored, coded.name)
        first, second = coded.encode(actual), coded.encode(own)
        known = ~np.isnan(first)
        gap, value = first[known] - second[known], first[known]
        if coded.kind == "number":
            spread = float(value.var()) if len(value) else 0.0
            error = float((gap**2).mean()) if len(value) else float("nan")
            measured = {"rmse": error**0.5, "r2": 1 - error / spread if spread > 0 else float("nan")}
        else:
            measured = {"accuracy": float((gap == 0).mean()) if len(value) else float("nan")}
        told.append({"column": coded.name, **measured})
    return told


def _reconstruction(columns: list[dict[str, Any]]) -> Measures:
    words = {
        "r2": "fraction of the variance that reconstructions keep; mean over columns of numbers",
        "rmse": "typical error of a reconstruction, in the units of the columns; root mean square over columns",
        "accuracy": "fraction of labels that reconstructions keep; mean over columns of labels",
    }
    result: Measures = {}
    for name, meaning in words.items():
        own = np.array([column[name] for column in columns if name in column])
        own = own[~np.isnan(own)]
        if len(own):
            result[name] = (float(np.sqrt((own**2).mean()) if name == "rmse" else own.mean()), meaning)
    return result


def _clusters(model: FrameModel, rows: pl.DataFrame) -> Measures:
    from sklearn.metrics import silhouette_score

    from ..data.frame import as_frame

    label = model.predict(rows)
    inertia = -model.score(rows) / rows.height
    result: Measures = {"inertia_per_row": (inertia, "mean squared distance from the nearest centre; lower is better")}
    if 1 < len(np.unique(label)) < len(label):
        values = np.asarray(model._rows(as_frame(rows, "The table")))
        size = min(len(values), MOST)
        chosen = np.random.default_rng(0).permutation(len(values))[:size]
        if 1 < len(np.unique(label[chosen])) < size:
            of = "" if size == len(values) else f"; of {size} rows drawn at random"
            meaning = f"−1 to 1: how much nearer rows are to their own cluster than to the next{of}"
            result["silhouette"] = (float(silhouette_score(values[chosen], label[chosen])), meaning)
    return result


def _draws(model: FrameModel, rows: pl.DataFrame) -> Measures:
    from ..evaluate import two_sample

    if rows.height < FEWEST:
        name = type(model.model_).__name__
        raise DataError(
            f"{name} has no log-probability of rows; a classifier that tells its draws from rows needs {FEWEST} rows "
            f"or more to learn from and to be asked about; the table has {rows.height}."
        )
    names = [column.name for column in model.coded_]
    result = two_sample(rows.select(names), model.sample(rows.height, random_state=0), random_state=0)
    return {
        "told_apart": (
            result.accuracy,
            f"fraction of {result.count} rows and draws that a classifier tells apart; 0.5 is best",
        ),
        "told_apart_error": (result.standard_error, "its standard error if there is no difference"),
        "p_value": (result.p_value, "probability of so many right answers if there is no difference"),
    }
