"""The energy of one linear regression with any likelihood, in blocks that stay in the cache.

E(W, s) = −Σ w log p(y | [W x̃, s]) + l2·‖W‖²/2,   ∇E = −Xᵀ(w·score) + …,   H = Xᵀ(w·information)X + …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...core import distributed
from ..objective import OnEta
from .design import Regression, Rows

__all__ = ["LinearEnergy"]

ROWS = 16384
"""Rows handled at once: a block of x is read once for η, the gradient and the Hessian."""


@dataclass(frozen=True)
class LinearEnergy:
    """E of one regression as a function of the vector [W row by row with its bias, shared constants]."""

    regression: Regression
    step: int = 1
    sample: tuple[Rows, ...] = ()
    """The rows that stand for all, `step` times fewer, if this is only an estimate of E."""

    def thinned(self, step: int) -> LinearEnergy:
        """The same energy estimated from every step-th row, which are gathered once."""
        blocks = [
            (x[::step].double().contiguous(), y[::step], None if weight is None else weight[::step])
            for x, y, weight in self.regression.blocks()
        ]
        x, y, weights = zip(*blocks, strict=True)
        weight = None if weights[0] is None else torch.cat(weights)
        return replace(self, step=step, sample=((torch.cat(x), torch.cat(y), weight),))

    @property
    def width(self) -> int:
        """Columns of the design, with the intercept."""
        return self.regression.features + int(self.regression.bias)

    @property
    def outputs(self) -> int:
        """Numbers of η that depend on x."""
        return self.regression.design.layer.out_features // self.regression.design.outputs

    def start(self) -> Tensor:
        """The parameters that the module has now."""
        design, k = self.regression.design, self.outputs
        rows = slice(self.regression.output * k, (self.regression.output + 1) * k)
        weight = design.layer.weight.detach()[rows]
        if self.regression.bias:
            weight = torch.cat([weight, design.layer.bias.detach()[rows].unsqueeze(-1)], 1)
        parts = [weight.flatten()]
        if design.module.shared is not None:
            parts.append(design.module.shared.detach().view(-1, design.shared)[self.regression.output])
        return torch.cat(parts).double().cpu()

    def write(self, point: Tensor) -> None:
        """Put a solution into the module."""
        table = point[: self.outputs * self.width].view(self.outputs, self.width)
        weight, bias = table[:, : self.regression.features], table[:, -1] if self.regression.bias else None
        shared = point[self.outputs * self.width :]
        self.regression.design.write(self.regression.output, weight, bias, shared if len(shared) else None)

    def l1(self) -> Tensor:
        """The L1 rate of each parameter."""
        return self._rates(0)

    def _rates(self, which: int) -> Tensor:
        on_weight, on_bias = self.regression.rates()
        table = torch.full((self.outputs, self.width), on_weight[which], dtype=torch.float64)
        if self.regression.bias:
            table[:, -1] = on_bias[which]
        return torch.cat([table.flatten(), torch.zeros(self.regression.design.shared, dtype=torch.float64)])

    def value(self, point: Tensor, *, hessian: bool) -> tuple[float, Tensor, Tensor | None]:
        """E, its gradient and Hessian: one pass over the rows."""
        objective = self.regression.design.problem.objective
        assert isinstance(objective, OnEta)
        k, width, features = self.outputs, self.width, self.regression.features
        table, shared = point[: k * width].view(k, width), point[k * width :]
        total, gradient = torch.zeros((), dtype=torch.float64), torch.zeros_like(point)
        grid = gradient[: k * width].view(k, width)
        matrix = torch.zeros(len(point), len(point), dtype=torch.float64) if hessian else None
        for x, y, weight in self._pieces():
            eta = x @ table[:, :features].T
            if self.regression.bias:
                eta += table[:, -1]
            if len(shared):
                eta = torch.cat([eta, shared.expand(len(x), -1)], 1)
            if hessian:
                log_prob, score, information = objective.derivatives(eta, y)
            else:
                log_prob, score = objective.smooth_value_and_grad(eta, y)
            if weight is not None:
                log_prob, score = log_prob * weight, score * weight.unsqueeze(-1)
            total -= log_prob.sum()
            sums = score.sum(0)
            grid[:, :features] -= score[:, :k].T @ x
            if self.regression.bias:
                grid[:, -1] -= sums[:k]
            gradient[k * width :] -= sums[k:]
            if matrix is not None:
                information = information if weight is None else information * weight[:, None, None]
                _add_hessian(matrix, x, information, k, self.regression.bias)
        distributed.sum_(total, gradient, *([] if matrix is None else [matrix]))
        l2 = self._rates(1)
        value = float(total) * self.step + 0.5 * float(l2 @ point.square())
        gradient = gradient * self.step + l2 * point
        if matrix is None:
            return value, gradient, None
        full = torch.triu(matrix) + torch.triu(matrix, 1).T
        return value, gradient, full * self.step + torch.diag(l2)

    def _pieces(self) -> Iterator[Rows]:
        for x, y, weight in self.sample or self.regression.blocks():
            for first in range(0, len(x), ROWS):
                part = slice(first, first + ROWS)
                yield x[part].double(), y[part], None if weight is None else weight[part]


def _add_hessian(matrix: Tensor, x: Tensor, information: Tensor, k: int, bias: bool) -> None:
    """Add Xᵀ S X to the upper triangle, block by block; the intercept is a column of ones that is never written out."""
    features, width = x.shape[1], x.shape[1] + int(bias)
    for i in range(k):
        rows = slice(i * width, i * width + features)
        for j in range(i, k):
            scaled = x * information[:, i, j].unsqueeze(-1)
            matrix[rows, j * width : j * width + features] += x.T @ scaled
            if bias:
                ones = scaled.sum(0)
                matrix[rows, (j + 1) * width - 1] += ones
                matrix[(i + 1) * width - 1, j * width : j * width + features] += ones
                matrix[(i + 1) * width - 1, (j + 1) * width - 1] += information[:, i, j].sum()
        if information.shape[-1] > k:
            matrix[rows, k * width :] += x.T @ information[:, i, k:]
            if bias:
                matrix[(i + 1) * width - 1, k * width :] += information[:, i, k:].sum(0)
    matrix[k * width :, k * width :] += information[:, k:, k:].sum(0)
