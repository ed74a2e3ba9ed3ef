"""Two samples of rows as numbers in common units: what all comparisons of real and generated rows begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import torch

from ...core.draws import form_of
from ...core.errors import DataError
from ...data.coded import Coded
from ...data.frame import as_frame, column_of
from ..protocol import as_array

__all__ = ["Pair", "distances_to", "pair_of"]


class Pair(NamedTuple):
    """Rows of two samples (n, d) and (m, d), and which columns are codes of labels."""

    real: np.ndarray
    generated: np.ndarray
    labels: np.ndarray

    def in_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Both as points: numbers in standard deviations of the real rows, labels so that two that differ are 1 apart.

        A missing number lies at the mean of the real rows; a missing label is a label of its own.
        """
        number = ~self.labels
        centre = np.nanmean(self.real[:, number], 0)
        spread = np.nanstd(self.real[:, number], 0)
        spread[~(spread > 0)] = 1.0
        out = []
        for rows in (self.real, self.generated):
            pieces = [np.nan_to_num((rows[:, number] - centre) / spread)]
            for index in np.flatnonzero(self.labels):
                levels = np.unique(np.nan_to_num(np.r_[self.real[:, index], self.generated[:, index]], nan=-1.0))
                pieces.append((np.nan_to_num(rows[:, index], nan=-1.0)[:, None] == levels) / np.sqrt(2))
            out.append(np.hstack(pieces))
        return out[0], out[1]


def pair_of(real: Any, generated: Any, names: tuple[str, str] = ("real", "generated")) -> Pair:
    """Two arrays (n, …) or two tables as numbers; text is coded by its levels in both.

    >>> pair = pair_of({"a": [1.0, 2.0], "b": ["x", "y"]}, {"a": [1.5], "b": ["z"]})
    >>> pair.generated.tolist(), pair.labels.tolist()
    ([[1.5, 2.0]], [False, True])
    """
    tables = [form_of(rows) != "array" or isinstance(rows, Mapping) for rows in (real, generated)]
    if all(tables):
        return _tables(as_frame(real, names[0]), as_frame(generated, names[1]), names)
    if any(tables):
        raise DataError(f"{names[0]} and {names[1]} must both be tables, or both arrays.")
    first, second = (_rows(rows, name) for rows, name in zip((real, generated), names, strict=True))
    if first.shape[1] != second.shape[1]:
        raise DataError(f"{names[0]} has {first.shape[1]} numbers per row, {names[1]} has {second.shape[1]}.")
    return Pair(first, second, np.zeros(first.shape[1], dtype=bool))


def _rows(rows: Any, name: str) -> np.ndarray:
    values = np.asarray(as_array(rows), dtype=np.float64)
    if values.ndim < 1 or len(values) < 2:
        raise DataError(f"{name} must have 2 rows or more.")
    if np.isinf(values).any():
        raise DataError(f"{name} contains infinity.")
    return values.reshape(len(values), -1)


def _tables(real: nw.DataFrame[Any], generated: nw.DataFrame[Any], names: tuple[str, str]) -> Pair:
    without = [name for name in real.columns if name not in generated.columns]
    if without:
        raise DataError(f"{names[1]} has no column {without[0]!r}, which {names[0]} has.")
    first, second, labels = [], [], []
    for name in real.columns:
        own, other = column_of(real, name), column_of(generated, name)
        coded = Coded.of(own)
        if coded.kind == "category":
            levels = sorted({str(v) for v in (*own.to_list(), *other.to_list()) if v is not None})
            coded = Coded(name, "category", tuple(levels))
        first.append(coded.encode(own))
        second.append(coded.encode(other))
        labels.append(coded.kind == "category")
    return Pair(np.column_stack(first), np.column_stack(second), np.array(labels))


def distances_to(points: np.ndarray, others: np.ndarray, count: int, *, own: bool = False) -> np.ndarray:
    """Distances of each point to its `count` nearest of the others, (n, count), nearest first, block by block.

    With `own`, points and others are the same rows, and a row is not its own neighbour.

    >>> distances_to(np.array([[0.0]]), np.array([[1.0], [3.0]]), 2).tolist()
    [[1.0, 3.0]]
    """
    if count + own > len(others):
        raise DataError(f"{count} nearest neighbours need {count + own} rows or more; there are {len(others)}.")
    there = torch.from_numpy(np.ascontiguousarray(others))
    out = np.empty((len(points), count))
    step = max(1, (1 << 23) // len(others))
    for first in range(0, len(points), step):
        here = torch.from_numpy(np.ascontiguousarray(points[first : first + step]))
        gaps = torch.cdist(here, there)
        if own:
            gaps[torch.arange(len(here)), torch.arange(first, first + len(here))] = torch.inf
        out[first : first + step] = gaps.topk(count, largest=False).values.numpy()
    return out
