"""Changed rows in the form of X: an array for an array, a tensor for a tensor, a frame for a frame."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import torch
from torch import Tensor

from ..models.supervised.base import as_array

__all__ = ["as_numbers", "changed_rows", "like"]


def changed_rows(X: Any, x: Tensor, point: Tensor, bounds: Any = None) -> Any:
    """What X, read as x, has become; what did not change is what it was, to the last digit of X."""
    changed, given = as_array(point), as_numbers(X)
    if given is not None and given.dtype.kind == "f" and given.shape == changed.shape:
        changed = np.where(as_array(point == x), given, changed).astype(given.dtype)
        if bounds is not None:
            low, high = (None if part is None else as_numbers(part) for part in bounds)
            changed = changed if low is None else np.maximum(changed, low.astype(given.dtype))
            changed = changed if high is None else np.minimum(changed, high.astype(given.dtype))
    return like(X, changed)


def like(X: Any, rows: np.ndarray) -> Any:
    """Rows (n, …) as X holds its own, with numbers that have fractions.

    >>> like(torch.zeros(3, 2), np.ones((1, 2)))
    tensor([[1., 1.]])
    """
    if isinstance(X, Tensor):
        return torch.from_numpy(rows).to(X.device, X.dtype if X.is_floating_point() else None)
    if isinstance(X, np.ndarray):
        return rows.astype(X.dtype) if X.dtype.kind == "f" else rows
    frame = _frame(X)
    if frame is None or rows.ndim != 2 or rows.shape[1] != len(frame.columns):
        return rows
    columns = {name: rows[:, place].copy() for place, name in enumerate(frame.columns)}
    made: Any = nw.from_dict(columns, backend=nw.get_native_namespace(frame)).to_native()
    if hasattr(made, "index") and len(made) == len(X):  # the names of rows, in pandas
        made.index = X.index
    return made


def as_numbers(X: Any) -> np.ndarray | None:
    """X as an array of numbers; None where it is none."""
    frame = _frame(X)
    try:
        values = as_array(X.detach()) if isinstance(X, Tensor) else np.asarray(X if frame is None else frame.to_numpy())
    except (TypeError, ValueError):  # rows of different lengths
        return None
    return values if values.dtype.kind in "fiub" else None


def _frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a frame whose columns have names; None where it is none."""
    if isinstance(X, Tensor | np.ndarray | list | tuple) or not hasattr(X, "columns"):
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    named = isinstance(frame, nw.DataFrame) and all(isinstance(name, str) for name in frame.columns)
    return frame if named else None
