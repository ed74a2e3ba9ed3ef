"""What p(x | condition) is conditioned on, as numbers that networks take.

    labels   →  one-hot, all 0 where a label is missing          numbers  →  (c − centre) / scale

Labels are text, booleans or integers, one per row; numbers are floats (n,), (n, k) or images (n, c, h, w); a table
has a column of either kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.draws import form_of
from ...core.errors import DataError, ModelFileError
from ...data.coded import Coded, coded_from_json
from ...data.frame import as_frame, column_of, some
from ...networks.layers.standardise import statistics

__all__ = ["ConditionForm"]

MOST = 10**7
"""Numbers that one row's condition in a file may have."""
Label = str | int | bool


@dataclass(frozen=True)
class ConditionForm:
    """How conditions looked in `fit`: `labels` of one column, the coded `columns` of a table, or numbers of a `shape`.

    >>> form = ConditionForm.of(["cat", "dog", "cat"])
    >>> form.shape, form.encode(["dog"]).tolist()
    ((2,), [[0.0, 1.0]])
    >>> ConditionForm.of([1.0, 3.0]).encode([2.0]).tolist()
    [[0.0]]
    """

    labels: tuple[Label, ...] = ()
    columns: tuple[Coded, ...] = ()
    numbers: tuple[int, ...] = ()
    """The shape of one row's numbers, as they were given: () for one number."""
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @staticmethod
    def of(condition: Any, weight: Tensor | None = None) -> ConditionForm:
        """The form of the conditions of training rows, in units for which a row counts as often as its weight."""
        if form_of(condition) != "array" or isinstance(condition, Mapping):
            frame = as_frame(condition, "condition")
            coded = tuple(Coded.of(column_of(frame, name)) for name in frame.columns)
            values = np.column_stack([column.encode(column_of(frame, column.name)) for column in coded])
            numeric = np.array([column.kind == "number" for column in coded])
            centre, scale = _units(values, weight) if numeric.any() else (np.zeros(len(coded)), np.ones(len(coded)))
            centre, scale = np.where(numeric, centre, 0.0), np.where(numeric, scale, 1.0)
            return ConditionForm(columns=coded, centre=tuple(centre.tolist()), scale=tuple(scale.tolist()))
        values = _array(condition)
        if values.dtype.kind in "OUSbiu" and values.ndim == 1:
            known = [value for value in values.tolist() if not _missing(value)]
            try:
                levels = sorted(set(known))
            except TypeError as error:
                raise DataError("condition has labels of several kinds; use text, or integers, for all.") from error
            if not levels:
                raise DataError("condition has no label in any row; leave it out.")
            return ConditionForm(labels=tuple(levels))
        values = _numbers(values)
        centre, scale = _units(values.reshape(len(values), -1) if values.ndim < 4 else values, weight)
        shape = tuple(values.shape[1:])
        return ConditionForm(numbers=shape, centre=tuple(centre.tolist()), scale=tuple(scale.tolist()))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row's condition, as networks take it."""
        if self.labels:
            return (len(self.labels),)
        if self.columns:
            return (sum(max(1, len(column.levels)) for column in self.columns),)
        return self.numbers or (1,)

    def encode(self, condition: Any) -> Tensor:
        """Conditions as a tensor (n, *shape)."""
        if condition is None:
            raise DataError("condition is missing: the model was fitted with one, so it needs one for each row.")
        if self.columns:
            frame = as_frame(condition, "condition")
            pieces = [self._column(index, frame) for index in range(len(self.columns))]
            return torch.from_numpy(np.column_stack(pieces))
        values = _array(condition)
        if self.labels:
            return torch.from_numpy(self._one_hot(values))
        values = _numbers(values)
        if values.shape[1:] != self.numbers:
            raise DataError(f"condition has rows of shape {values.shape[1:]}; the model was fitted on {self.numbers}.")
        if np.isnan(values).any():
            row = int(np.isnan(values.reshape(len(values), -1)).any(1).argmax())
            raise DataError(f"condition has NaN at row {row}; numbers of a condition cannot be missing.")
        values = values.reshape(len(values), *self.shape)
        wide = (-1, *(1,) * (values.ndim - 2)) if values.ndim == 4 else values.shape[1:]
        centre, scale = (np.reshape(part, wide) for part in (self.centre, self.scale))
        return torch.from_numpy((values - centre) / scale)

    def _one_hot(self, values: np.ndarray) -> np.ndarray:
        if values.ndim != 1:
            raise DataError(f"condition has shape {values.shape}; the model was fitted on one label per row.")
        place = {label: index for index, label in enumerate(self.labels)}
        out = np.zeros((len(values), len(self.labels)))
        for row, value in enumerate(values.tolist()):
            if _missing(value):
                continue
            if value not in place:
                known = some(map(repr, self.labels))
                raise DataError(f"condition has {value!r} at row {row}, which training did not show; known: {known}.")
            out[row, place[value]] = 1.0
        return out

    def _column(self, index: int, frame: Any) -> np.ndarray:
        column = self.columns[index]
        codes = column.encode(column_of(frame, column.name, "condition"))
        if column.kind == "category":
            return np.nan_to_num((codes[:, None] == np.arange(len(column.levels))).astype(float))
        if np.isnan(codes).any():
            row = int(np.isnan(codes).argmax())
            raise DataError(f"condition has a gap in column {column.name!r} at row {row}; only text may be missing.")
        return (codes - self.centre[index]) / self.scale[index]

    # --- files --------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        units = {"centre": list(self.centre), "scale": list(self.scale)}
        columns = [column.to_json() for column in self.columns]
        return {"labels": list(self.labels), "columns": columns, "numbers": list(self.numbers), **units}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ConditionForm:
        """The inverse of `to_json`; what does not fit itself is refused."""
        labels, numbers = tuple(data["labels"]), tuple(data["numbers"])
        centre, scale = tuple(data["centre"]), tuple(data["scale"])
        form = ConditionForm(labels, coded_from_json(data["columns"]), numbers, centre, scale)
        sizes = all(type(size) is int and size > 0 for size in numbers) and math.prod(form.shape) <= MOST
        finite = all(isinstance(value, float) and math.isfinite(value) for value in (*centre, *scale))
        plain = all(isinstance(label, str | int) for label in labels) and len(set(labels)) == len(labels)
        units = 0 if labels else len(form.columns) or (numbers[0] if len(numbers) > 2 else math.prod(numbers))
        fits = len(centre) == len(scale) == units and all(value > 0 for value in scale)
        if not (sizes and finite and plain and fits and bool(labels) + bool(form.columns) < 2):
            raise ModelFileError("The file has a description of conditions that does not fit itself.")
        return form


def _array(condition: Any) -> np.ndarray:
    values = condition.detach().cpu().numpy() if isinstance(condition, Tensor) else np.asarray(condition)
    if values.ndim == 0 or not len(values):
        raise DataError("condition must have one entry for each row.")
    return values


def _numbers(values: np.ndarray) -> np.ndarray:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        strange = next((value for value in values.ravel().tolist() if not isinstance(value, int | float)), None)
        raise DataError(f"condition has {strange!r} where numbers are needed.") from error
    if np.isinf(numbers).any():
        raise DataError("condition contains infinity; every number must be finite.")
    return numbers


def _units(values: np.ndarray, weight: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale of each column, or of each channel of images."""
    columns = (values.shape[1], *(1,) * (values.ndim - 2))
    clean = torch.from_numpy(~np.isnan(values.reshape(len(values), -1)).any(1))
    own = None if weight is None or len(weight) != len(values) else weight[clean]
    units = statistics(torch.from_numpy(values)[clean], columns, own) if bool(clean.any()) else None
    if units is None:
        return np.zeros(columns[0]), np.ones(columns[0])
    return units.centre.reshape(-1).numpy(), units.scale.reshape(-1).numpy()


def _missing(value: Any) -> bool:
    return value is None or value != value
