"""The door: what a user passes becomes a tensor once, or a clear error. Nothing is copied where it need not be."""

from __future__ import annotations

import math
import os
from collections.abc import Sized
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import Tensor

from .errors import DataError
from .quiet import quiet

__all__ = [
    "as_rows",
    "as_weights",
    "check_cast",
    "check_finite",
    "check_length",
    "check_squares",
    "device_of",
    "keep_columns",
]

NUMERIC = ("int", "uint", "float", "bool", "decimal")
"""How the names of column types begin that are numbers, in pandas and polars."""
NOT_NUMBERS = ("could not convert string", "bytes/strings", "Cannot cast")
"""What numpy, scikit-learn and pandas say of text where they need numbers."""
FURTHEST = 1e150
"""The largest number that rows may have: distances between them are squared."""
SHOWN, WIDTH = 4, 80
"""Columns, and characters of a model, that a message shows."""

TABLES = "for tables with categories, dates or missing values use likely.TableModel"


def as_rows(estimator: Any, X: Any, *, reset: bool, missing: bool = False) -> Tensor:
    """X as a tensor (n, …) of its own dtype: finite, not empty, with the columns that were seen in `fit`.

    With `missing`, NaN is a missing value and passes; infinity never does.
    """
    if not reset and isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in (np.float32, np.float64):
        known = getattr(estimator, "n_features_in_", None)
        if X.shape[1] == known and len(X) and not hasattr(estimator, "feature_names_in_"):
            x = _shared(X)
            check_finite(x, "X", missing=missing)
            return x
    if issparse(X):
        size = math.prod(X.shape) * max(X.dtype.itemsize, 4)
        takes = f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
        raise DataError(
            f"X is sparse, {' × '.join(map(str, X.shape))}, and {type(estimator).__name__} takes dense rows; "
            f"X.toarray() makes them, which takes {takes}."
        )
    if isinstance(X, Tensor):
        x = _checked_tensor(estimator, X.detach(), reset)
    else:
        try:
            array = validate_data(
                estimator,
                X,
                reset=reset,
                dtype="numeric",
                allow_nd=True,
                ensure_all_finite=False,
                skip_check_array=False,
            )
        except (ValueError, TypeError) as error:
            columns = _text_columns(X)
            if isinstance(error, TypeError) and not columns:
                raise  # of pandas it is where columns of dates or categories meet numbers; else an object is no number
            text = isinstance(error, TypeError) or any(words in str(error) for words in NOT_NUMBERS)
            has = f"values that are not numbers{columns}" if columns else "text where numbers are needed"
            raise DataError(f"X has {has}; {_tables(estimator)}" if text else _named("X", error)) from error
        x = _shared(_numbers(array, estimator, X))
    check_finite(x, "X", getattr(estimator, "feature_names_in_", None), missing=missing)
    return x


def keep_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """In `fit` the columns of a list of frames, one for each sequence, which must agree; later refuses others.

    >>> import pandas as pd
    >>> keep_columns(None, [pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [2], "a": [1]})], reset=True)
    Traceback (most recent call last):
    likely.core.errors.DataError: X[1] has the columns b, a, but X[0] has a, b; give all the same in the same order.
    """
    frames = [place for place, part in enumerate(X) if hasattr(part, "columns")] if isinstance(X, list | tuple) else []
    if not frames:
        return
    first = [str(name) for name in X[frames[0]].columns]
    for place in frames[1:]:
        own = [str(name) for name in X[place].columns]
        if own != first:
            raise DataError(
                f"X[{place}] has the columns {', '.join(own)}, but X[{frames[0]}] has {', '.join(first)}; give all the "
                "same in the same order."
            )
    known = getattr(estimator, "feature_names_in_", None)
    if reset:
        estimator.feature_names_in_ = np.asarray(first, dtype=object)
    elif known is not None and first != list(known):
        raise DataError(
            f"X has frames with the columns {', '.join(first)}; the model was fitted on {', '.join(known)}, in this "
            "order."
        )


def check_length(y: np.ndarray, rows: int) -> None:
    """Targets have an entry for each row of X.

    >>> check_length(np.zeros(2), 3)
    Traceback (most recent call last):
    likely.core.errors.DataError: y has 2 rows, but X has 3 rows; inconsistent numbers of samples.
    """
    if y.ndim == 0 or len(y) != rows:
        size = f"{len(y)} rows" if y.ndim else "a single value"
        raise DataError(f"y has {size}, but X has {rows} rows; inconsistent numbers of samples.")


def check_level(level: Any) -> None:
    """The probability of an interval is a number between 0 and 1.

    >>> check_level(90)
    Traceback (most recent call last):
    likely.core.errors.DataError: level=90 must be one number strictly between 0 and 1, such as 0.9.
    """
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise DataError(f"level={level!r} must be one number strictly between 0 and 1, such as 0.9.")


def as_weights(sample_weight: Any, x: Sized) -> Tensor | None:
    """Weights as a float64 tensor (n,): finite, not negative, not all zero. None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Tensor):
        sample_weight = sample_weight.detach().cpu().numpy()
    rows = np.broadcast_to(0.0, (len(x), 1))
    try:
        checked = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        raise DataError(_named("sample_weight", error)) from error
    if checked.sum() == 0:
        raise DataError("sample_weight is zero for every row, so that nothing is left to fit; give some row weight.")
    return torch.from_numpy(checked if checked.flags.writeable else checked.copy())  # a column of a frame is read-only


def check_finite(x: Tensor, name: str, columns: Any = None, *, missing: bool = False) -> None:
    """Raise a `DataError` with the position of the first NaN or infinity; with `missing`, of the first infinity."""
    if not x.is_floating_point() or bool(torch.isfinite(x.sum())):
        return
    for start in range(0, len(x), 65536):
        block = x[start : start + 65536]
        bad = (torch.isinf(block) if missing else ~torch.isfinite(block)).nonzero()
        if len(bad):
            place = [int(i) for i in bad[0]]
            value = x[start : start + 65536][tuple(place)].item()
            shown = "NaN" if value != value else f"infinity ({'inf' if value > 0 else '-inf'})"
            row, rest = place[0] + start, place[1:]
            column = f", column {columns[rest[0]]!r}" if columns is not None and rest else ""
            column = column or (f", column {rest[0]}" if len(rest) == 1 else f", position {rest}" if rest else "")
            raise DataError(
                f"{name} contains {shown} at row {row}{column}; drop or fill such values first "
                "(likely.TableModel fills missing ones in tables)."
            )


def check_squares(x: Tensor) -> Tensor:
    """Rows (n, d) as they are; a `DataError` for numbers whose square no float64 holds.

    Distances of rows are of squares: one such number would spoil the answers about all other rows.

    >>> check_squares(torch.tensor([[1.0, -1e160]], dtype=torch.float64))
    Traceback (most recent call last):
    likely.core.errors.DataError: X contains -1e+160 at row 0, column 1, whose square is beyond all numbers. ...
    """
    if not x.is_floating_point() or not x.numel() or bool(x.abs().amax() <= FURTHEST):
        return x
    place = (x.abs() > FURTHEST).nonzero()[0].tolist()
    where = f"row {place[0]}, column {place[1]}" if len(place) == 2 else f"row {place[0]}, position {place[1:]}"
    raise DataError(
        f"X contains {float(x[tuple(place)]):.3g} at {where}, whose square is beyond all numbers. Is it an error? Rows "
        "must be in the units of those of fit."
    )


def check_cast(before: Tensor, after: Tensor, name: str = "X") -> None:
    """Raise a `DataError` for numbers that a cast has made infinite.

    >>> check_cast(torch.tensor([1e39], dtype=torch.float64), torch.tensor([1e39]))
    Traceback (most recent call last):
    likely.core.errors.DataError: X has the number 1e+39; the model's float32 ends at 3.4e+38. Is it an error? ...
    """
    if after.dtype.itemsize >= before.dtype.itemsize or bool(after.sum().isfinite()):
        return
    lost = after.isinf().to(before.device) & before.isfinite()
    if bool(lost.any()):
        kind, most = str(after.dtype).removeprefix("torch."), torch.finfo(after.dtype).max
        raise DataError(
            f"{name} has the number {float(before[lost][0]):.3g}; the model's {kind} ends at {most:.2g}. Is it an "
            "error? Rows must be in the units of those of fit."
        )


def device_of(device: Any) -> torch.device:
    """A torch device; "auto" is the GPU of this process, or else the CPU."""
    if isinstance(device, str) and device == "auto":
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    try:
        usable = torch.device(device)
        torch.zeros(1, device=usable).item()  # a name that torch knows may still have no hardware behind it
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f'device={device!r} cannot be used here ({reason}); use "auto", "cpu" or "cuda".') from error
    return usable


def _numbers(array: np.ndarray, estimator: Any, X: Any) -> np.ndarray:
    """An array of numbers; None among them is NaN."""
    if array.dtype.kind == "O":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError) as error:
            columns = _text_columns(X)
            raise DataError(f"X has values that are not numbers ({error}){columns}; {_tables(estimator)}") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"X has values of kind {array.dtype} where numbers are needed; {_tables(estimator)}")
    return array


def _tables(estimator: Any) -> str:
    """The call that encodes a table for this model; of a model without a target, or of none, the class alone."""
    if not (is_classifier(estimator) or is_regressor(estimator)):
        return f"{TABLES}."
    own = repr(estimator) if len(repr(estimator)) <= WIDTH else f"{type(estimator).__name__}(…)"
    return f'{TABLES}: TableModel({own}, target="y").fit(X, y) encodes its columns, and predict takes such tables too.'


def _text_columns(X: Any) -> str:
    """Which columns of a frame are not numbers, in brackets."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return ""
    kinds = [str(kind).lower() for kind in dtypes]
    own = [str(name) for name, kind in zip(X.columns, kinds, strict=True) if not kind.startswith(NUMERIC)]
    shown = ", ".join(map(repr, own[:SHOWN])) + (", …" if len(own) > SHOWN else "")
    return f" (column{'s' * (len(own) != 1)} {shown})" if own else ""


def _named(argument: str, error: Exception) -> str:
    """The words of an error, and the argument they are about."""
    text = str(error)
    return text if argument in text.split("\n")[0] else f"{argument}: {text}"


def _shared(array: np.ndarray) -> Tensor:
    """A tensor over the same memory where torch can; a copy where it cannot (negative strides, odd dtypes)."""
    if any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = np.array(array, dtype=array.dtype.newbyteorder("="))
    if array.dtype in (np.uint16, np.uint32):
        array = array.astype(np.int64)
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    if array.dtype == np.uint64 or array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if array.flags.writeable:
        return torch.from_numpy(array)
    with quiet(UserWarning, "The given NumPy array is not writ"):  # torch could write to it; a fit only reads X
        return torch.from_numpy(array)


def _checked_tensor(estimator: Any, x: Tensor, reset: bool) -> Tensor:
    if x.layout != torch.strided or x.is_complex() or x.is_quantized or x.ndim < 2:
        given = f"{x.dtype} of shape {tuple(x.shape)}, {str(x.layout).removeprefix('torch.')}"
        raise DataError(f"X must be a real, dense tensor of rows (n, …); found {given}.")
    if 0 in x.shape:
        raise DataError(f"X is empty: its shape is {tuple(x.shape)}.")
    if reset:
        estimator.n_features_in_ = x.shape[1]
        vars(estimator).pop("feature_names_in_", None)  # those of an earlier fit on a table
    elif x.shape[1] != estimator.n_features_in_:
        raise DataError(
            f"X has {x.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return x
