"""Sequences at the door: one, a list of several of any lengths, or rows that hold them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.validation import as_rows
from . import offsets_of

__all__ = ["Sequences"]


class Sequences:
    """Rows x (T, d) in float64 that hold n sequences one after the other, and where each starts, `offsets` (n + 1,).

    >>> from likely import HiddenMarkov
    >>> found = Sequences.of(HiddenMarkov(), [np.zeros((2, 1)), np.zeros((3, 1))], reset=True)
    >>> found.offsets, found.together(np.arange(5))
    (array([0, 2, 5]), [array([0, 1]), array([2, 3, 4])])
    """

    def __init__(self, x: Tensor, offsets: np.ndarray, listed: bool) -> None:
        self.x, self.offsets, self.listed = x, offsets, listed

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """How many steps each sequence has."""
        return np.diff(self.offsets)

    @staticmethod
    def of(model: Any, X: Any, lengths: Any = None, *, reset: bool) -> Sequences:
        """What a user passed. A list of arrays is a list of sequences; (n, T, d) are n sequences of one length.

        NaN is a missing value. A sequence of single numbers may be (T,) instead of (T, 1).
        """
        several = _several(X)
        if several is None:
            rows = _one(X, "X")
            x = as_rows(model, rows, reset=reset, missing=True)
            return Sequences(_two_axes(x, model).double(), offsets_of(lengths, len(x)), False)
        if lengths is not None:
            raise DataError("lengths is for rows that hold sequences one after the other; X is a list of sequences.")
        if not several:
            raise DataError("X is an empty list: there is no sequence in it.")
        pieces = [_piece(each, index) for index, each in enumerate(several)]
        widths = [piece.shape[1] for piece in pieces]
        odd = next((index for index, width in enumerate(widths) if width != widths[0]), None)
        if odd is not None:
            raise DataError(f"sequence {odd} has {widths[odd]} columns, but sequence 0 has {widths[0]}.")
        x = as_rows(model, np.concatenate(pieces), reset=reset, missing=True)
        return Sequences(x.double(), offsets_of([len(piece) for piece in pieces], len(x)), True)

    def together(self, rows: np.ndarray) -> Any:
        """Answers for each row, in the form in which the sequences came: a list of arrays, or one array."""
        return np.split(rows, self.offsets[1:-1]) if self.listed else rows


def _several(X: Any) -> Sequence[Any] | None:
    """The sequences, if X is more than one."""
    if getattr(X, "ndim", None) == 3:
        return list(X)
    if not isinstance(X, list | tuple):
        return None
    arrays = [getattr(each, "ndim", 0) >= 1 for each in X]
    nested = [isinstance(each, list | tuple) and any(isinstance(row, list | tuple) for row in each) for each in X]
    return X if not X or any(arrays) or any(nested) else None


def _piece(each: Any, index: int) -> np.ndarray:
    if isinstance(each, Tensor):
        each = each.detach().cpu()
    try:
        array = np.asarray(_one(each, f"sequence {index}"))
    except ValueError as error:
        raise DataError(f"sequence {index} is not an array of rows: {error}") from error
    if array.ndim != 2:
        raise DataError(f"sequence {index} has shape {array.shape}; a sequence is (T, d), or (T,) for single numbers.")
    if len(array) == 0:
        raise DataError(f"sequence {index} is empty; leave such sequences out.")
    return array


def _one(X: Any, name: str) -> Any:
    """Single numbers as rows of one column."""
    if isinstance(X, list | tuple):
        if not X:
            raise DataError(f"{name} is empty; leave such sequences out.")
        return [[each] for each in X] if not isinstance(X[0], list | tuple) else X
    if getattr(X, "ndim", None) == 1:
        return (X if isinstance(X, Tensor) else np.asarray(X)).reshape(-1, 1)
    return X


def _two_axes(x: Tensor, model: Any) -> Tensor:
    if x.ndim != 2:
        raise DataError(f"X has shape {tuple(x.shape)}; {type(model).__name__} needs one vector a step: (T, d).")
    return x.contiguous() if x.dtype == torch.float64 else x
