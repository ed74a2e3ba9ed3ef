"""Gaussians with missing values: what is seen (o) is marginal, what is missing (m) is conditional.

    log p(xₒ | k) = log N(xₒ; μₒ, Σₒₒ)
    E[xₘ | xₒ] = μₘ + Σₘₒ Σₒₒ⁻¹ (xₒ − μₒ),      Cov[xₘ | xₒ] = Σₘₘ − Σₘₒ Σₒₒ⁻¹ Σₒₘ

Rows with the same values missing are treated together. Parameters and sums are those of `GaussianEmission`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ...likelihoods.special import LOG_2PI
from .base import Params

__all__ = ["accumulate_missing", "expected_missing", "has_missing", "log_prob_missing", "patterns"]


def has_missing(x: Tensor) -> bool:
    """Whether some value is NaN: one sum, since rows hold no infinity."""
    return x.is_floating_point() and bool(x.sum().isnan())


def patterns(x: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Groups of rows that have the same values: the rows, the columns seen, and the columns missing.

    >>> x = torch.tensor([[1.0, torch.nan], [1.0, 2.0], [3.0, torch.nan]])
    >>> [(rows.tolist(), seen.tolist(), gone.tolist()) for rows, seen, gone in patterns(x)]
    [([1], [0, 1], []), ([0, 2], [0], [1])]
    """
    masks, group = x.isnan().unique(dim=0, return_inverse=True)
    for index, mask in enumerate(masks):
        yield (group == index).nonzero().ravel(), (~mask).nonzero().ravel(), mask.nonzero().ravel()


def log_prob_missing(params: Params, x: Tensor) -> Tensor:
    """log p(xₒ | k): (n, S, K)."""
    mean, covariance = params["mean"], params["covariance"]
    log_prob = torch.zeros(len(x), *mean.shape[:2], dtype=torch.float64)
    for rows, seen, _ in patterns(x):
        if len(seen):
            factor = torch.linalg.cholesky(covariance[..., seen.unsqueeze(-1), seen])
            gap = x[rows][:, seen].double() - mean[..., seen].unsqueeze(-2)  # (S, K, rows, seen)
            z = torch.linalg.solve_triangular(factor, gap.mT, upper=False)
            log_scale = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            value = -0.5 * z.square().sum(-2) - (log_scale + 0.5 * len(seen) * LOG_2PI).unsqueeze(-1)
            log_prob[rows] = value.movedim(-1, 0)
    return log_prob


def expected_missing(params: Params, x: Tensor, responsibility: Tensor) -> Tensor:
    """Σₖ share (n, K) · E[x | xₒ, k]: (n, d), 0 where a value is seen. Means are (K, d), covariances (K or 1, d, d).

    >>> params = {"mean": torch.zeros(1, 2).double(), "covariance": torch.tensor([[[1.0, 0.5], [0.5, 1.0]]]).double()}
    >>> expected_missing(params, torch.tensor([[2.0, torch.nan]]).double(), torch.ones(1, 1).double())
    tensor([[0., 1.]], dtype=torch.float64)
    """
    mean, covariance = params["mean"], params["covariance"]
    expected = torch.zeros(x.shape, dtype=torch.float64)
    for rows, seen, gone in patterns(x):
        if not len(gone):
            continue
        guess = mean[:, None, gone].expand(-1, len(rows), -1)
        if len(seen):
            factor = torch.linalg.cholesky(covariance[..., seen.unsqueeze(-1), seen])
            regression = torch.cholesky_solve(covariance[..., seen.unsqueeze(-1), gone], factor)
            guess = guess + (x[rows][:, seen].double() - mean[:, None, seen]) @ regression
        expected[rows.unsqueeze(-1), gone] = torch.einsum("nk,knd->nd", responsibility[rows], guess)
    return expected


def accumulate_missing(totals: Params, params: Params, x: Tensor, weight: Tensor) -> None:
    """Add the expected z and zzᵀ of weighted rows to the totals, in place."""
    mean, covariance, whiten = params["mean"], params["covariance"], params["whiten"]
    tied = totals["second"].shape[1] == 1 and mean.shape[1] > 1
    totals["count"] += weight.sum(0).unsqueeze(-1)
    for rows, seen, gone in patterns(x):
        own = weight[rows].movedim(0, -1)  # (S, K, rows)
        gap = torch.zeros(*mean.shape[:2], len(rows), x.shape[1], dtype=torch.float64)
        spread = torch.zeros_like(covariance)
        if len(seen):
            gap[..., seen] = x[rows][:, seen].double() - mean[..., seen].unsqueeze(-2)
        if len(seen) and len(gone):
            across = covariance[..., seen.unsqueeze(-1), gone]
            factor = torch.linalg.cholesky(covariance[..., seen.unsqueeze(-1), seen])
            regression = torch.cholesky_solve(across, factor)  # (S, K or 1, seen, gone)
            gap[..., gone] = gap[..., seen] @ regression
            known = across.mT @ regression
            spread[..., gone.unsqueeze(-1), gone] = covariance[..., gone.unsqueeze(-1), gone] - known
        elif len(gone):
            spread = covariance.clone()
        z = gap @ whiten
        totals["first"] += (own.unsqueeze(-2) @ z).squeeze(-2)
        second = (z * own.unsqueeze(-1)).mT @ z
        second += own.sum(-1)[..., None, None] * (whiten.mT @ spread @ whiten)
        totals["second"] += second.sum(1, keepdim=True) if tied else second
