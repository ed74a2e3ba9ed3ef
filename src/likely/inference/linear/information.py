"""How sure the parameters of a linear model are: the curvature of the log-likelihood, and the spread of its scores.

    A = −Σᵢ wᵢ ∂² log pᵢ / ∂θ∂θᵀ      cov(θ̂) = A⁻¹                 if the likelihood is right
    B = Σᵢ wᵢ sᵢ sᵢᵀ,  sᵢ = ∂ log pᵢ / ∂θ   cov(θ̂) = A⁻¹ B A⁻¹        if only the mean is (the sandwich)

θ are the weights and the bias of each number of η, one after the other, then the learned constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ...core import distributed
from ...likelihoods import Likelihood
from ...likelihoods.curvature import hessian
from .design import Regression

__all__ = ["Correction", "Information", "information", "meat", "pseudo_inverse"]

Correction = Literal["HC0", "HC1", "HC2", "HC3"]
BLOCK = 1 << 22
"""Numbers of a Jacobian that are made at once."""


class Information(NamedTuple):
    """What the rows say about θ at its estimate."""

    matrix: Tensor
    """A, the observed information (p, p)."""
    gradient: Tensor
    """Σ w s (p,), which is 0 at the most probable parameters."""
    log_likelihood: float
    total: float
    """Σ w: the number of targets."""


class _Rows(NamedTuple):
    jacobian: Tensor  # ∂η/∂θ, (b, size, p)
    log_prob: Tensor
    score: Tensor  # ∂ log p / ∂η, (b, size)
    second: Tensor  # −∂² log p / ∂η∂ηᵀ, (b, size, size)
    weight: Tensor


def information(regression: Regression, likelihood: Likelihood) -> Information:
    """A, the gradient, log p and Σ w over all rows and processes."""
    sums = None
    for rows in _rows(regression, likelihood):
        flat = rows.jacobian.flatten(0, 1)
        curved = (rows.second * rows.weight[:, None, None]) @ rows.jacobian
        weighted = rows.score * rows.weight.unsqueeze(-1)
        parts = [
            flat.T @ curved.flatten(0, 1),
            flat.T @ weighted.flatten(),
            (rows.weight * rows.log_prob).sum(),
            rows.weight.sum(),
        ]
        sums = parts if sums is None else [a + b for a, b in zip(sums, parts, strict=True)]
    assert sums is not None
    for part in sums:
        distributed.sum_(part)
    matrix, gradient, log_likelihood, total = sums
    return Information(0.5 * (matrix + matrix.T), gradient, float(log_likelihood), float(total))


def meat(
    regression: Regression, likelihood: Likelihood, bread: Tensor, correction: Correction, clusters: Tensor | None
) -> Tensor:
    """B, of single rows or of `clusters` (n,), numbered from 0, whose rows may depend on each other.

    HC2 and HC3 divide a score by √(1 − h) and by 1 − h, h the leverage of its row: tr −∂²log p/∂η² J A⁻¹ Jᵀ.
    """
    size, own = bread.shape[0], regression.design.layer.out_features // regression.design.outputs
    summed = bread.new_zeros(0 if clusters is None else int(clusters.max()) + 1, size)
    total, first = bread.new_zeros(size, size), 0
    for rows in _rows(regression, likelihood):
        scores = torch.einsum("bm,bmp->bp", rows.score, rows.jacobian)
        if correction in ("HC2", "HC3"):
            jacobian = rows.jacobian[:, :own]  # learned constants are no part of the mean
            spread = jacobian @ bread @ jacobian.mT
            leverage = (rows.second[:, :own, :own] * spread).sum((1, 2)).clamp(0, 1 - 1e-9)
            scores = scores / (1 - leverage).pow(0.5 if correction == "HC2" else 1.0).unsqueeze(-1)
        if clusters is None:
            total += scores.T @ (scores * rows.weight.unsqueeze(-1))
        else:
            cluster = clusters[first : first + len(scores)]
            summed.index_add_(0, cluster, scores * rows.weight.unsqueeze(-1))
        first += len(scores)
    return total if clusters is None else summed.T @ summed


def pseudo_inverse(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of a positive semidefinite matrix on the space that it determines, and a basis of the rest (p, k).

    Columns may be in very different units.

    >>> pseudo_inverse(torch.diag(torch.tensor([4.0, 0.0], dtype=torch.float64)))[0]
    tensor([[0.2500, 0.0000],
            [0.0000, 0.0000]], dtype=torch.float64)
    """
    diagonal = matrix.diagonal().clamp_min(0).sqrt()
    unit = torch.where(diagonal > 0, diagonal, 1.0)
    values, vectors = torch.linalg.eigh(matrix / torch.outer(unit, unit))
    kept = values > 1e-10 * values[-1].clamp_min(1e-300)
    turned = vectors / unit.unsqueeze(-1)
    inverse = (turned[:, kept] / values[kept]) @ turned[:, kept].T
    return inverse, turned[:, ~kept]


def _rows(regression: Regression, likelihood: Likelihood) -> Iterator[_Rows]:
    """Derivatives of all rows in blocks."""
    design = regression.design
    layer, own = design.layer, design.layer.out_features // design.outputs
    part = slice(regression.output * own, (regression.output + 1) * own)
    weight, bias = layer.weight.detach()[part], None if layer.bias is None else layer.bias.detach()[part]
    shared = None if design.module.shared is None else design.module.shared.detach().view(-1, design.shared)
    width = layer.in_features + int(bias is not None)
    count = own + design.shared
    step = max(1, BLOCK // (count * (own * width + design.shared)))
    for x, y, counted in regression.blocks():
        for first in range(0, len(x), step):
            rows, targets = x[first : first + step], y[first : first + step]
            eta = rows @ weight.T
            eta = eta if bias is None else eta + bias
            if shared is not None:
                eta = torch.cat([eta, shared[regression.output].expand(len(rows), -1)], -1)
            log_prob, score, second = hessian(likelihood.log_prob, eta, targets, count)
            with_one = rows if bias is None else torch.cat([rows, rows.new_ones(len(rows), 1)], -1)
            jacobian = rows.new_zeros(len(rows), count, own * width + design.shared)
            for number in range(own):
                jacobian[:, number, number * width : (number + 1) * width] = with_one
            for number in range(design.shared):
                jacobian[:, own + number, own * width + number] = 1.0
            given = rows.new_ones(len(rows)) if counted is None else counted[first : first + step].to(rows)
            yield _Rows(jacobian, log_prob, score, -second, given)
