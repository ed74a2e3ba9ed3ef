"""A few numbers that tell one dataset from another, so that a checkpoint is not resumed on other rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..data.rows import Rows
from .dataset import Dataset

__all__ = ["data_fingerprint"]


def data_fingerprint(data: Dataset) -> list[Any]:
    """Shapes and a few sums of all parts, by row and by column: cheap, and different for different data."""
    marks: list[Any] = []
    told = (data.x, data.y, data.weight) if data.condition is None else (data.x, data.y, data.weight, data.condition)
    parts = [part.tensors() if isinstance(part, Rows) else (part,) for part in told]
    for tensor in (tensor for part in parts for tensor in part):
        if tensor is None:
            marks.append(None)
            continue
        table = tensor.reshape(len(tensor), -1)
        by_row, by_column = table.sum(1, dtype=torch.float64), table.sum(0, dtype=torch.float64)
        marks += [list(tensor.shape), _weighted_sum(by_row), _weighted_sum(by_column)]
    return marks


def _weighted_sum(values: Tensor) -> float:
    """Σ vᵢ cos i: changes with the order, too."""
    return float(torch.nan_to_num(values.cpu() @ torch.arange(len(values), dtype=torch.float64).cos()))
