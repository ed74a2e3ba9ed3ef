"""Gaussian components as a differentiable density of numbers without constraints, for gradients and samplers.

    μ = centre + s u,   Σ = s (LLᵀ + floor · I) sᵀ,   s² the variances of the columns,   log Lᵢᵢ any numbers

so that every u and L is a Gaussian whose covariance, in the units of the columns, is nowhere below the floor.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ...likelihoods.special import LOG_2PI
from ...probability.free_covariance import covariance_of, free_of
from ...probability.gaussian import factor_or_nan
from .base import Params
from .gaussian_missing import has_missing

__all__ = ["Covariance", "Units", "from_free", "smooth_log_prob", "to_free"]

Covariance = Literal["full", "tied", "diag", "spherical"]


class Units(NamedTuple):
    """The means and variances of the columns (d,), the floor in their units, and the form of the covariances."""

    centre: Tensor
    variance: Tensor
    floor: float
    covariance: Covariance

    @property
    def matrix(self) -> bool:
        """Whether columns vary together within a component."""
        return self.covariance in ("full", "tied")


def to_free(params: Params, units: Units) -> Params:
    """Means and covariances as numbers without constraints; what lies at the floor ends just above it.

    >>> units = Units(torch.zeros(1), torch.ones(1), 0.0, "diag")
    >>> given = {"mean": torch.tensor([[[2.0]]]), "covariance": torch.tensor([[[4.0]]])}
    >>> from_free(to_free(given, units), units)
    {'mean': tensor([[[2.]]]), 'covariance': tensor([[[4.]]])}
    """
    unit, covariance = units.variance.sqrt(), params["covariance"]
    mean = (params["mean"] - units.centre) / unit
    if not units.matrix:
        variance = covariance / (units.variance if units.covariance == "diag" else units.variance.mean())
        return {"mean": mean, "covariance": (variance - units.floor).clamp_min(1e-9).log() / 2}
    inner = covariance / (unit.unsqueeze(-1) * unit) - units.floor * torch.eye(len(unit), dtype=torch.float64)
    return {"mean": mean, "covariance": free_of(inner, 1e-9)}  # at the floor, nothing is left above it


def from_free(free: Params, units: Units) -> Params:
    """The inverse of `to_free`, differentiable."""
    given = free["covariance"]
    centre, variance = units.centre.to(given), units.variance.to(given)
    unit = variance.sqrt()
    mean = centre + unit * free["mean"]
    if not units.matrix:
        scale = variance if units.covariance == "diag" else variance.mean()
        return {"mean": mean, "covariance": scale * ((2 * given).exp() + units.floor)}
    inner = covariance_of(given, len(unit)) + units.floor * torch.eye(len(unit)).to(given)
    return {"mean": mean, "covariance": unit.unsqueeze(-1) * unit * inner}


def smooth_log_prob(params: Params, x: Tensor, *, matrix: bool) -> Tensor:
    """log p of each row under each component, (n, S, K), differentiable in the parameters; NaN is marginalised."""
    mean, covariance = params["mean"], params["covariance"]
    dim = mean.shape[-1]
    if not matrix:
        variance = covariance.expand_as(mean)
        known = ~x.isnan()[:, None, None]
        # NaN is replaced before the arithmetic, not after it: 0 · NaN would make the gradient NaN.
        away = x.nan_to_num(nan=0.0).to(mean)[:, None, None] - mean
        energy = away.square() / variance + variance.log() + LOG_2PI
        return -0.5 * torch.where(known, energy, 0.0).sum(-1)  # a missing value is marginalised
    if has_missing(x):
        whole = covariance.expand(*mean.shape, dim)
        return torch.stack([_known_log_prob(mean, whole, row) for row in x])
    factor = factor_or_nan(covariance).expand(*mean.shape, dim)
    away = (x.to(mean)[:, None, None] - mean).movedim(0, -1)  # (S, K, d, n)
    squares = torch.linalg.solve_triangular(factor, away, upper=False).square().sum(-2)
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -(0.5 * squares + (log_det + 0.5 * dim * LOG_2PI).unsqueeze(-1)).movedim(-1, 0)


def _known_log_prob(mean: Tensor, covariance: Tensor, row: Tensor) -> Tensor:
    """log p of the values that a row has, for each component: (S, K)."""
    known = (~row.isnan()).nonzero()[:, 0]
    factor = factor_or_nan(covariance[..., known, :][..., known])
    away = (row[known].to(mean) - mean[..., known]).unsqueeze(-1)
    squares = torch.linalg.solve_triangular(factor, away, upper=False).squeeze(-1).square().sum(-1)
    log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -0.5 * squares - log_det - 0.5 * len(known) * LOG_2PI
