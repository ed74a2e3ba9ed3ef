"""The linear view of a problem: η = W x + b for each target, as one regression per output.

Where the predictor is a single linear layer, the rows and positions of the data become the rows of a design matrix, and
every unfolded position is a regression of its own, with its own row of W, bias and shared constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...core import distributed
from ...core.errors import SpecError
from ...data.sparse_rows import SparseRows
from ..dataset import BLOCK, Batch, Dataset
from ..predictor import Predictor
from ..problem import Problem

__all__ = ["Design", "Regression", "Rows", "dense_blocks", "design_of"]

Rows = tuple[Tensor, Tensor, Tensor | None]


@dataclass(frozen=True)
class Design:
    """A linear problem: its predictor and how its output splits into independent regressions."""

    problem: Problem
    module: Predictor
    layer: nn.Linear

    @property
    def outputs(self) -> int:
        """How many independent regressions: one for each unfolded position."""
        return math.prod(self.module.positions)

    @property
    def shared(self) -> int:
        """Learned constants in one regression."""
        return 0 if self.module.shared is None else self.module.shared.shape[-1]

    @property
    def parameters(self) -> int:
        """Numbers to find in one regression."""
        width = self.layer.in_features + int(self.layer.bias is not None)
        return self.layer.out_features // self.outputs * width + self.shared

    def regression(self, output: int) -> Regression:
        """The regression of one unfolded position."""
        return Regression(self, output)

    def write(self, output: int, weight: Tensor, bias: Tensor | None, shared: Tensor | None) -> None:
        """Put the solution of one regression into the module."""
        size = len(weight)
        with torch.no_grad():
            self.layer.weight[output * size : (output + 1) * size] = weight
            if bias is not None:
                self.layer.bias[output * size : (output + 1) * size] = bias
            if shared is not None and self.module.shared is not None:
                self.module.shared.view(-1, self.shared)[output] = shared


@dataclass(frozen=True)
class Regression:
    """One regression: blocks of (x, y, weight) rows, penalty rates, and where it starts."""

    design: Design
    output: int

    @property
    def bias(self) -> bool:
        """Whether there is an intercept."""
        return self.design.layer.bias is not None

    @property
    def features(self) -> int:
        """Columns of x."""
        return self.design.layer.in_features

    def blocks(self) -> Iterator[Rows]:
        """This process's rows, in blocks: x (b, d), y (b, *event), weight (b,) or None."""
        data, flatten = self.design.problem.data, self.design.module.flatten
        unfolded = bool(self.design.module.positions)
        lead = len(data.positions)
        part = distributed.shard(len(data))
        for batch in dense_blocks(data, part):
            x = batch.x.flatten(1) if flatten else batch.x
            y, weight = batch.y, batch.weight
            if unfolded:
                y = y.flatten(1, lead)[:, self.output]
                weight = None if weight is None else weight.flatten(1)[:, self.output]
            elif lead:
                x, y = x.flatten(0, lead), y.flatten(0, lead)
                weight = None if weight is None else weight.flatten()
            yield x, y, weight

    def total_weight(self) -> float:
        """Σ w of all rows, over all processes."""
        total = torch.zeros((), dtype=torch.float64)
        for x, _, weight in self.blocks():
            total += len(x) if weight is None else weight.sum().double().cpu()
        distributed.sum_(total)
        return float(total)

    def rates(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(l1, l2) of weights and of biases; a prior of another form cannot be solved this way."""
        problem, layer = self.design.problem, self.design.layer
        weight = problem.rates("network.weight", layer.weight)
        bias = problem.rates("network.bias", layer.bias) if self.bias else (0.0, 0.0)
        if weight is None or bias is None:
            raise SpecError(f"{problem.prior!r} has no penalty rates.")
        return (weight[0], weight[1]), (bias[0], bias[1])


def dense_blocks(data: Dataset, part: slice) -> Iterator[Batch]:
    """Some rows in blocks; sparse ones become dense block by block, of a size that is bounded still."""
    if not isinstance(data.x, SparseRows):
        yield from data.blocks(part)
        return
    for batch in data.blocks(part, max(1, BLOCK // data.x.width)):
        yield batch._replace(x=batch.x.dense())


def design_of(problem: Problem) -> Design | None:
    """The linear view, or None if η is not linear in the parameters or the prior is not a separable penalty."""
    if not problem.description.linear:
        return None
    module = problem.module()
    if not isinstance(module, Predictor) or module.linear is None:
        return None
    layer = module.linear
    if any(problem.rates(name, value) is None for name, value in module.named_parameters()):
        return None
    if module.shared is not None and any(problem.rates("shared", module.shared) or ()):
        return None  # a penalty on learned constants: left to the general methods
    return Design(problem, module, layer)
