"""What rows a generative model is of: their shape and the form they came in, so that new rows come in the same.

X  →  x (n, *shape)  →  X        a table's text as codes, gaps as NaN; arrays and images as they are
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.declared import NUMBERS
from ...core.draws import Form, form_of
from ...core.errors import DataError, ModelFileError
from ...core.random import isolated
from ...core.validation import as_rows
from ...data.coded import Coded, coded_from_json, table_of
from ...data.frame import as_frame, column_of
from ...inference.dataset import Batch
from ...inference.training.perturb import augmented
from .rounding import significant

__all__ = ["RowForm", "as_shown", "augmentation", "refuse_text"]

MOST = 10**8
"""Numbers that one row of a model in a file may have."""
DISTINCT = 4096
"""Numbers that a column may be recorded in, at most."""


@dataclass(frozen=True)
class RowForm:
    """The shape of a row, and how a table's columns are coded (none for arrays).

    >>> form, x = RowForm.read(None, {"size": [1.0, 2.5], "colour": ["red", "blue"]})
    >>> x.tolist()
    [[1.0, 1.0], [2.5, 0.0]]
    >>> form.given(x)["colour"].to_list()
    ['red', 'blue']
    """

    kind: Form
    shape: tuple[int, ...]
    columns: tuple[Coded, ...] = ()
    recorded: tuple[tuple[float, ...], ...] = ()
    """For each column of a table the numbers that it was recorded in, rising; none where they hardly repeat."""

    @staticmethod
    def read(model: Any, X: Any) -> tuple[RowForm, Tensor]:
        """The form of training rows, and the rows as a tensor (n, *shape) where NaN is a missing value."""
        kind = form_of(X)
        if kind != "array" or isinstance(X, Mapping):
            frame = as_frame(X, "X")
            if not len(frame) or not frame.columns:
                raise DataError("X has no rows or no columns to learn from.")
            columns = tuple(Coded.of(column_of(frame, name)) for name in frame.columns)
            form = RowForm("polars" if kind == "array" else kind, (len(columns),), columns)
            if model is not None:
                model.n_features_in_ = len(columns)
                model.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
            x = form.rows(model, X)
            return replace(form, recorded=tuple(_recorded(c, own) for c, own in zip(columns, x.T, strict=True))), x
        x = as_rows(model, X, reset=True, missing=True)
        return RowForm("array", tuple(x.shape[1:])), x

    def rows(self, model: Any, X: Any) -> Tensor:
        """Rows that a question is about; they must look as the training rows did."""
        if self.columns:
            if form_of(X) == "array" and not isinstance(X, Mapping):
                names = ", ".join(column.name for column in self.columns)
                raise DataError(f"X is not a table; the model was fitted on one with the columns {names}.")
            frame = as_frame(X, "X")
            values = [column.encode(column_of(frame, column.name, "X")) for column in self.columns]
            return torch.from_numpy(np.column_stack(values))
        x = as_rows(model, X, reset=False, missing=True)
        if tuple(x.shape[1:]) != self.shape:
            raise DataError(f"X has rows of shape {tuple(x.shape[1:])}; the model was fitted on {self.shape}.")
        return x

    def fixed(self, condition: Any, count: int) -> Tensor:
        """Rows of which some columns are given and the rest is NaN: a dict or a table by column, or an array."""
        if self.columns:
            table = as_frame(_columns(condition), "condition")
            strange = [name for name in table.columns if name not in {column.name for column in self.columns}]
            if strange:
                known = ", ".join(column.name for column in self.columns)
                raise DataError(f"condition has a column {strange[0]!r}; the model has {known}.")
            x = np.full((len(table), len(self.columns)), np.nan)
            for index, column in enumerate(self.columns):
                if column.name in table.columns:
                    x[:, index] = column.encode(column_of(table, column.name, "condition"))
        else:
            x = np.asarray(_by_index(condition, self.shape), dtype=np.float64)
            if x.shape == self.shape:
                x = x[None]
            if x.shape[1:] != self.shape:
                raise DataError(f"condition has rows of shape {x.shape[1:]}; the model was fitted on {self.shape}.")
        if len(x) not in (1, count):
            raise DataError(f"condition has {len(x)} rows; it must have 1, or n = {count}.")
        return torch.from_numpy(np.repeat(x, count // len(x), 0))

    def as_recorded(self, x: Tensor) -> Tensor:
        """New rows (…, columns) with the nearest number that a column was recorded in, as 37.5 for 37.4981.

        Other floats have eight digits, which is all that float32 tells.

        >>> form, _ = RowForm.read(None, {"rate": [0.5, 1.25, 0.5, 1.25], "size": [1.0, 2.0, 3.0, 4.0]})
        >>> form.as_recorded(torch.tensor([[0.7, 2.2]])).tolist()
        [[0.5, 2.2]]
        """
        if not self.columns:
            return x
        x = x.to(torch.float64, copy=True)
        for index, column in enumerate(self.columns):
            numbers = self.recorded[index] if self.recorded else ()
            if not numbers and column.dtype.startswith("Float"):
                x[..., index] = significant(x[..., index])
            if numbers:
                known, own = torch.tensor(numbers, dtype=x.dtype), x[..., index].contiguous()
                above = torch.searchsorted(known, own).clamp(1, len(known) - 1) if len(known) > 1 else own.long() * 0
                below = (above - 1).clamp_min(0)
                x[..., index] = torch.where(own - known[below] <= known[above] - own, known[below], known[above])
        return x

    def given(self, x: Tensor, filled: Tensor | None = None) -> Any:
        """Rows in the form that the training rows had: an array (n, *shape), or a table.

        `filled` says which values are means: a column of integers with some of them is one of floats.
        """
        values = x.cpu().numpy()
        if not self.columns:
            return values
        return table_of(self.columns, values, self.kind, None if filled is None else filled.cpu().numpy())

    # --- files --------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        columns = [column.to_json() for column in self.columns]
        recorded = [list(numbers) for numbers in self.recorded]
        return {"kind": self.kind, "shape": list(self.shape), "columns": columns, "recorded": recorded}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> RowForm:
        """The inverse of `to_json`; what does not fit itself is refused."""
        shape, columns = tuple(data["shape"]), coded_from_json(data["columns"])
        sizes = all(type(size) is int and size > 0 for size in shape) and math.prod(shape) <= MOST
        tables = data["kind"] in ("pandas", "polars") if columns else data["kind"] == "array"
        if not sizes or not shape or not tables or (columns and shape != (len(columns),)):
            raise ModelFileError(f"The file has rows of shape {data['shape']!r} in the form {data['kind']!r}.")
        recorded = data.get("recorded", [])
        if not all(NUMBERS.holds(numbers) and numbers == sorted(numbers) for numbers in recorded) or (
            recorded and len(recorded) != len(columns)
        ):
            raise ModelFileError("The file has recorded numbers that do not fit its columns.")
        return RowForm(data["kind"], shape, columns, tuple(map(tuple, recorded)))


def _recorded(column: Coded, values: Tensor) -> tuple[float, ...]:
    """The distinct numbers of a column, if each is there twice on average."""
    distinct = values[~values.isnan()].unique()
    few = column.kind == "number" and len(distinct) <= DISTINCT and 2 * len(distinct) <= len(values)
    return tuple(distinct.tolist()) if few else ()


def augmentation(inference: Any) -> Any:
    """How an inference, or the one inside it, changes rows in training; None if it does not."""
    spec = inference
    while spec is not None and getattr(spec, "augment", None) is None:
        spec = getattr(spec, "by", None)
    return None if spec is None else spec.augment


def as_shown(x: Tensor, inference: Any, seed: int) -> Tensor:
    """Training rows as the model will see them: with the inference's augmentation, where it has one.

    So a model of binary pixels may be fitted to grey ones, `MAP(augment=Binarise())`.
    """
    augment = augmentation(inference)
    if augment is None:
        return x
    with isolated(seed):
        shown = augmented(augment, Batch(x.to(inference.dtype), None, None), (), 1).x
    return shown[: len(x)]


def _columns(condition: Any) -> Any:
    """A dict with single values among its columns as one with columns alone."""
    if not isinstance(condition, Mapping):
        return condition
    single = {name: np.ndim(value) == 0 for name, value in condition.items()}
    lengths = {len(value) for name, value in condition.items() if not single[name]}
    rows = lengths.pop() if lengths else 1
    return {name: [value] * rows if single[name] else value for name, value in condition.items()}


def _by_index(condition: Any, shape: tuple[int, ...]) -> Any:
    """A dict from column numbers to values as one row."""
    if not isinstance(condition, Mapping):
        return condition
    row = np.full(shape, np.nan)
    for index, value in condition.items():
        if not isinstance(index, int) or len(shape) != 1 or not 0 <= index < shape[0]:
            raise DataError(f"condition names a column {index!r}; the model has columns 0 to {shape[0] - 1}.")
        row[index] = value
    return row


def refuse_text(form: RowForm, why: str) -> None:
    """Raise a `DataError` for a table with a column of text, where the model's numbers mean sizes.

    >>> refuse_text(RowForm.read(None, {"colour": ["red", "blue"]})[0], "ScoreModel has gradients of numbers")
    Traceback (most recent call last):
    ...
    likely.core.errors.DataError: Column 'colour' is text, and ScoreModel has gradients of numbers; Autoregressive, ...
    """
    text = [column.name for column in form.columns if column.kind == "category"]
    if text:
        raise DataError(
            f"Column {text[0]!r} is text, and {why}; Autoregressive, Flow, VAE, Diffusion and GAN take tables with "
            "text. Or give it as a condition."
        )
