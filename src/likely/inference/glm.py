"""The energy of one linear regression with any likelihood, in blocks that stay in the cache.

    E(W, s) = −Σ w log p(y | [W x̃, s]) + l2·‖W‖²/2,   ∇E = −Xᵀ(w·score) + …,   H = Xᵀ(w·information)X + …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import distributed
from .design import Regression, Rows

__all__ = ["LinearEnergy"]

ROWS = 8192
"""Rows handled at once: a block of x is read once for η, the gradient and the Hessian."""


@dataclass(frozen=True)
class LinearEnergy:
    """E of one regression as a function of the vector [W row by row with its bias, shared constants]."""

    regression: Regression
    step: int = 1

    def thinned(self, step: int) -> LinearEnergy:
        """The same energy estimated from every step-th row."""
        return replace(self, step=step)

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
        """The L1 rate of each number."""
        return self._rates(0)

    def _rates(self, which: int) -> Tensor:
        on_weight, on_bias = self.regression.rates()
        table = torch.full((self.outputs, self.width), on_weight[which], dtype=torch.float64)
        if self.regression.bias:
            table[:, -1] = on_bias[which]
        return torch.cat([table.flatten(), torch.zeros(self.regression.design.shared, dtype=torch.float64)])

    def value(self, point: Tensor, *, hessian: bool) -> tuple[float, Tensor, Tensor | None]:
        """E, its gradient and Hessian: one pass over the rows."""
        likelihood = self.regression.design.problem.likelihood
        k, width = self.outputs, self.width
        table, shared = point[: k * width].view(k, width), point[k * width :]
        total = torch.zeros((), dtype=torch.float64)
        slope, matrix = torch.zeros_like(point), torch.zeros(len(point), len(point), dtype=torch.float64)
        for x, y, weight in self._pieces():
            eta = x @ table.T
            if len(shared):
                eta = torch.cat([eta, shared.expand(len(x), -1)], 1)
            if hessian:
                log_prob, score, information = likelihood.derivatives(eta, y)
            else:
                log_prob, score = likelihood.slope(eta, y)
            if weight is not None:
                log_prob, score = log_prob * weight, score * weight.unsqueeze(-1)
            total -= log_prob.sum()
            slope[: k * width] -= (score[:, :k].T @ x).flatten()
            slope[k * width :] -= score[:, k:].sum(0)
            if hessian:
                information = information if weight is None else information * weight[:, None, None]
                _add_hessian(matrix, x, information, k)
        distributed.sum_(total, slope, *([matrix] if hessian else []))
        if self.step > 1:
            total, slope, matrix = total * self.step, slope * self.step, matrix * self.step
        l2 = self._rates(1)
        value = float(total) + 0.5 * float(l2 @ point.square())
        if not hessian:
            return value, slope + l2 * point, None
        matrix = torch.triu(matrix) + torch.triu(matrix, 1).T + torch.diag(l2)
        return value, slope + l2 * point, matrix

    def _pieces(self) -> Iterator[Rows]:
        for x, y, weight in self.regression.blocks(self.step):
            for first in range(0, len(x), ROWS):
                part = slice(first, first + ROWS)
                rows = x[part].double()
                if self.regression.bias:
                    rows = torch.cat([rows, torch.ones(len(rows), 1, dtype=torch.float64)], 1)
                yield rows, y[part], None if weight is None else weight[part]


def _add_hessian(matrix: Tensor, x: Tensor, information: Tensor, k: int) -> None:
    """Add Xᵀ S X, block by block of the upper triangle."""
    width = x.shape[1]
    for i in range(k):
        for j in range(i, k):
            block = x.T @ (x * information[:, i, j].unsqueeze(-1))
            matrix[i * width : (i + 1) * width, j * width : (j + 1) * width] += block
    shared = information.shape[-1] - k
    if shared:
        for i in range(k):
            matrix[i * width : (i + 1) * width, k * width :] += x.T @ information[:, i, k:]
        matrix[k * width :, k * width :] += information[:, k:, k:].sum(0)
