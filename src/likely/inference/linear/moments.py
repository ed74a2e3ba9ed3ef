"""What least squares needs of the data: weighted second moments, from one pass in blocks.

Σ w (x − x̄)(x − x̄)ᵀ,   Σ w (x − x̄)(y − ȳ),   Σ w (y − ȳ)²
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ...core import distributed
from ...core.interrupt import interruptible
from .design import Design, Regression, dense_blocks

__all__ = ["Moments", "moments_of", "moments_together", "moments_with_intercept"]

RANK = 1e-10
"""Eigenvalues of the equilibrated XᵀX below this fraction of the largest: use QR instead, which keeps all digits."""

ROWS = 8192
"""Rows handled at once, so that centring and products happen in the cache."""


@dataclass(frozen=True)
class Moments:
    """Sufficient statistics of centred data: what a pass over the rows leaves."""

    gram: Tensor  # (d, d)  Σ w (x − x̄)(x − x̄)ᵀ
    cross: Tensor  # (d,)   Σ w (x − x̄)(y − ȳ)
    spread: float  # Σ w (y − ȳ)²
    x_mean: Tensor  # (d,)
    y_mean: float
    total: float  # Σ w
    root: (
        Tensor | None
    )  # (≤ d + 1, d + 1) triangular, with rootᵀroot the moments of [x, y]: where the gram is too coarse


def moments_of(regression: Regression) -> Moments:
    """One pass; columns are centred by the first block's means first, so that large offsets do not cost digits."""
    d, centred = regression.features, regression.bias and regression.rates()[1] == (0.0, 0.0)
    shift = torch.zeros(d + 1, dtype=torch.float64)
    if centred:
        first = next(_shifted(regression, shift), None)
        shift = shift if first is None else first[0].mean(0)
        distributed.broadcast_(shift)
    gram, sums = torch.zeros(d + 1, d + 1, dtype=torch.float64), torch.zeros(d + 2, dtype=torch.float64)
    for rows, weight in _shifted(regression, shift):
        scaled = rows if weight is None else rows * weight.unsqueeze(-1)
        gram += scaled.T @ rows
        sums[:-1] += scaled.sum(0)
        sums[-1] += len(rows) if weight is None else weight.sum()
    distributed.sum_(gram, sums)
    total = float(sums[-1])
    mean = sums[:-1] / total if centred else torch.zeros_like(shift)
    gram -= total * torch.outer(mean, mean)
    root = None
    if _coarse(gram[:d, :d]):
        root = _root(regression, shift + mean)
        gram = root.T @ root
    where = shift + mean
    return Moments(gram[:d, :d], gram[:d, d], float(gram[d, d]), where[:d], float(where[d]), total, root)


def moments_together(design: Design) -> list[Moments] | None:
    """The moments of all outputs from one pass, where every row has every target; None where that does not hold.

    What the outputs share is computed once: Σ (x − x̄)(x − x̄)ᵀ is one tensor for all of them.
    """
    first = design.regression(0)
    data, d, outputs = design.problem.data, first.features, design.outputs
    plain = first.bias and first.rates()[1] == (0.0, 0.0) and data.weight is None and distributed.world() == 1
    if outputs < 2 or not plain:
        return None
    width = d + outputs
    shift, gram, sums = (torch.zeros(*size, dtype=torch.float64) for size in ((width,), (width, width), (width,)))
    total = 0
    for batch in dense_blocks(data, slice(0, len(data))):
        x = batch.x.flatten(1) if design.module.flatten else batch.x
        y = batch.y.flatten(1)
        for start in range(0, len(x), ROWS):
            part = slice(start, start + ROWS)
            rows = torch.cat([x[part].double(), y[part].double()], 1)
            if not total:
                shift = rows.mean(0)
            rows -= shift
            gram[:d] += rows[:, :d].T @ rows
            gram.diagonal()[d:] += rows[:, d:].square().sum(0)
            sums += rows.sum(0)
            total += len(rows)
    mean = sums / total
    gram[:d] -= total * torch.outer(mean[:d], mean)
    spread, where = gram.diagonal()[d:] - total * mean[d:].square(), shift + mean
    inner = gram[:d, :d].clone()
    if _coarse(inner):
        return None
    return [
        Moments(inner, gram[:d, d + k].clone(), float(spread[k]), where[:d], float(where[d + k]), float(total), None)
        for k in range(outputs)
    ]


def _shifted(regression: Regression, shift: Tensor) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Rows [x, y] − shift in float64, with their weights."""
    d = regression.features
    for x, y, weight in regression.blocks():
        for first in range(0, len(x), ROWS):
            part = slice(first, first + ROWS)
            rows = torch.empty(len(x[part]), d + 1, dtype=torch.float64)
            rows[:, :d], rows[:, d] = x[part], y[part]
            yield rows.sub_(shift), None if weight is None else weight[part].double()


def _coarse(gram: Tensor) -> bool:
    """Whether the eigenvalues span so much that squaring has cost the solution's digits."""
    scale = gram.diagonal().clamp_min(0).sqrt()
    scale = torch.where(scale > 0, scale, 1.0)
    values = interruptible(float(len(gram)) ** 3, torch.linalg.eigvalsh, gram / torch.outer(scale, scale))
    return bool(values[0] < RANK * values[-1].clamp_min(1e-300))


def _root(regression: Regression, shift: Tensor) -> Tensor:
    """The triangular factor of the (weighted) rows by QR of blocks, stacked over processes."""
    root = torch.zeros(0, len(shift), dtype=torch.float64)
    for rows, weight in _shifted(regression, shift):
        scaled = rows if weight is None else rows * weight.sqrt().unsqueeze(-1)
        root = torch.linalg.qr(torch.cat([root, scaled]), mode="r").R
    if distributed.world() > 1:
        everyone = torch.zeros(distributed.world(), len(shift), len(shift), dtype=torch.float64)
        everyone[distributed.rank(), : len(root)] = root
        distributed.sum_(everyone)
        root = torch.linalg.qr(everyone.flatten(0, 1), mode="r").R
    return root


def moments_with_intercept(regression: Regression) -> tuple[Tensor, Tensor]:
    """XᵀWX and XᵀWy with a column of ones."""
    d = regression.features
    gram, cross = torch.zeros(d + 1, d + 1, dtype=torch.float64), torch.zeros(d + 1, dtype=torch.float64)
    for rows, weight in _shifted(regression, torch.zeros(d + 1, dtype=torch.float64)):
        x = torch.cat([rows[:, :d], torch.ones(len(rows), 1, dtype=torch.float64)], 1)
        scaled = x if weight is None else x * weight.unsqueeze(-1)
        gram += scaled.T @ x
        cross += scaled.T @ rows[:, d]
    distributed.sum_(gram, cross)
    return gram, cross
