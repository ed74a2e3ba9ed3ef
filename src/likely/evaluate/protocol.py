"""What evaluation asks of a model: scikit-learn's methods, and `log_prob`, `predict_dist`, `predict_interval`.

Any object with the method asked for will do. Pipelines and searches are opened, because scikit-learn's wrappers pass
on only the methods that it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from torch import Tensor

from ..core.errors import DataError
from ..models.labels import missing_among

__all__ = ["as_array", "has", "missing", "need", "opened", "take"]


def opened(model: Any, X: Any) -> tuple[Any, Any]:
    """The estimator inside pipelines and searches, and X as it sees it."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "named_steps") and hasattr(model, "steps"):
            if len(model.steps) > 1:
                X = model[:-1].transform(X)
            model = model[-1]
        else:
            return model, X


def has(model: Any, method: str) -> bool:
    """Whether a model, and the one inside a model of tables, has a method."""
    inner = getattr(model, "model_", None) or getattr(model, "model", None)
    return hasattr(model, method) and (not hasattr(inner, "fit") or hasattr(inner, method))


def need(model: Any, methods: Sequence[str], question: str) -> None:
    """Raise a `DataError` unless the model has one of the methods."""
    if not any(has(model, method) for method in methods):
        raise DataError(
            f"{question} needs a model with {' or '.join(methods)}; {type(model).__name__} has none. "
            "likely.Regressor and likely.Classifier have them."
        )


def as_array(value: Any) -> np.ndarray:
    """Targets or predictions as an array."""
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def missing(model: Any, y: np.ndarray) -> np.ndarray:
    """Which targets are missing: NaN, None, or the `missing_label` that the model was told."""
    return missing_among(y, _missing_label(model))


def _missing_label(model: Any) -> int | None:
    """That of the estimator inside pipelines, searches and models of tables."""
    for inside in ("best_estimator_", "steps", "model_"):
        if hasattr(model, inside):
            inner = getattr(model, inside)
            return _missing_label(inner[-1][1] if inside == "steps" else inner)
    label: int | None = getattr(model, "missing_label", None)
    return label


def take(rows: Any, index: np.ndarray) -> Any:
    """Some rows of an array, a tensor, a frame or a list."""
    return rows[index] if isinstance(rows, Tensor | np.ndarray) else _safe_indexing(rows, index)
