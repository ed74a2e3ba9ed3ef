"""Sequences at the door: one, a list of several of any lengths, or rows that hold them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.validation import as_rows, keep_columns
from .rows import Ragged

__all__ = ["offsets_of", "read_sequences"]


def read_sequences(model: Any, X: Any, lengths: Any = None, *, reset: bool, missing: bool = True) -> Ragged:
    """What a user passed, in float64. A list of arrays is a list of sequences; (n, T, d) are n sequences of one length.

    NaN is a missing value, unless `missing` is False. A sequence of single numbers may be (T,) instead of (T, 1).

    >>> from sklearn.base import BaseEstimator
    >>> rows = read_sequences(BaseEstimator(), [np.zeros((2, 1)), np.zeros((3, 1))], reset=True)
    >>> rows.offsets.tolist(), rows.listed
    ([0, 2, 5], True)
    """
    if isinstance(X, Ragged):
        rows = X.to(torch.device("cpu"))
        return rows.with_features(_double(as_rows(model, _column(rows.values), reset=reset, missing=missing)))
    several = _several(X)
    if several is None:
        x = as_rows(model, _column(X), reset=reset, missing=missing)
        if x.ndim != 2:
            raise DataError(f"X has shape {tuple(x.shape)}; {type(model).__name__} needs one vector per step: (T, d).")
        rows = Ragged(_double(x), torch.from_numpy(offsets_of(lengths, len(x))))
        rows.listed = False
        return rows
    if lengths is not None:
        raise DataError("lengths is for rows that hold sequences one after the other; X is a list of sequences.")
    if not several:
        raise DataError("X is an empty list: there is no sequence in it.")
    rows = Ragged.of([_column(sequence) for sequence in several], missing=missing)
    rows = rows.with_features(_double(as_rows(model, rows.values, reset=reset, missing=missing)))
    keep_columns(model, X, reset=reset)
    return rows


def offsets_of(lengths: Any, rows: int) -> np.ndarray:
    """Where each sequence starts, (n + 1,), in rows that hold them one after the other.

    >>> offsets_of([2, 3], 5)
    array([0, 2, 5])
    """
    if lengths is None:
        lengths = [rows]
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu":
        raise DataError(f"lengths must be integers, one for each sequence; found {lengths!r}.")
    if (counts < 1).any():
        place = int(np.flatnonzero(counts < 1)[0])
        raise DataError(f"sequence {place} is empty: lengths[{place}] = {counts[place]}; leave such sequences out.")
    if counts.sum() != rows:
        raise DataError(f"lengths sum to {counts.sum()}, but there are {rows} rows.")
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _several(X: Any) -> Sequence[Any] | None:
    """The sequences, if X is more than one."""
    if getattr(X, "ndim", None) == 3:
        return list(X)
    if not isinstance(X, list | tuple):
        return None
    arrays = (getattr(part, "ndim", 0) >= 1 or hasattr(part, "columns") for part in X)
    nested = (isinstance(part, list | tuple) and any(isinstance(row, list | tuple) for row in part) for part in X)
    return X if not X or any(arrays) or any(nested) else None


def _column(X: Any) -> Any:
    """Single numbers as rows of one column."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
    if isinstance(X, list | tuple):
        return [[value] for value in X] if X and not isinstance(X[0], list | tuple) else X
    if getattr(X, "ndim", None) == 1:
        return (X if isinstance(X, Tensor) else np.asarray(X)).reshape(-1, 1)
    return X


def _double(x: Tensor) -> Tensor:
    """As the compiled loops take it."""
    return x.double().contiguous()
