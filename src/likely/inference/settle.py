"""Statistics that layers gather from the rows, such as those of batch norm, taken from all rows before a fit begins.

    mean = Σ_b n_b m_b / n,      variance = (Σ_b (n_b − 1) v_b + Σ_b n_b (m_b − mean)²) / (n − 1)

over blocks b of n_b rows with means m_b and variances v_b: what one pass over all rows at once would give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..core.random import isolated
from .dataset import Batch, Dataset
from .predictor import Predictor
from .problem import Problem

__all__ = ["settle"]


@torch.no_grad()
def settle(module: nn.Module, problem: Problem) -> nn.Module:
    """The module in evaluation mode, after one pass over the data in training mode if it keeps anything of the rows."""
    network = module.network if isinstance(module, Predictor) else module
    if not any(True for _ in network.buffers()):
        return module.eval()
    layers = [_Gathered(layer) for layer in network.modules() if getattr(layer, "track_running_stats", False)]
    with isolated(problem.seed):
        module.train()
        for batch in _even_blocks(problem.data):
            module(*problem.objective.inputs(batch))
            for layer in layers:
                layer.add(len(batch.x))
    for layer in layers:
        layer.write()
    return module.eval()


def _even_blocks(data: Dataset) -> Iterator[Batch]:
    """All rows in blocks of equal size, give or take one row: none is a single row, which has no variance."""
    count = math.ceil(len(data) / max(1, len(next(data.blocks()).x)))
    for block in range(count):
        yield data.batch(slice(len(data) * block // count, len(data) * (block + 1) // count))


class _Gathered:
    """The mean and the variance of one layer's inputs over the blocks so far."""

    def __init__(self, layer: Any) -> None:
        self.layer, self.momentum = layer, layer.momentum
        layer.momentum = 1.0  # the layer then holds what the last block gave, and nothing of its past
        self.rows = 0
        self.mean: Tensor = torch.zeros_like(layer.running_mean)
        self.scatter: Tensor = torch.zeros_like(layer.running_var)
        self.last: Tensor = layer.running_var

    def add(self, rows: int) -> None:
        """Take in the block that the layer has just seen (Chan's update: nothing cancels)."""
        gap = self.layer.running_mean - self.mean
        total = self.rows + rows
        self.scatter += (rows - 1) * self.layer.running_var + gap.square() * (self.rows * rows / total)
        self.mean += gap * (rows / total)
        self.last, self.rows = self.layer.running_var.clone(), total

    def write(self) -> None:
        """Give the layer what all rows say, and its own momentum back."""
        self.layer.momentum = self.momentum
        self.layer.running_mean.copy_(self.mean)
        self.layer.running_var.copy_(self.scatter / (self.rows - 1) if self.rows > 1 else self.last)
