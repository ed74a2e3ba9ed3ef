"""Covariances as real numbers without constraints: the entries of a Cholesky factor, logarithms on its diagonal.

    Σ = LLᵀ,   φ = (log L₁₁, L₂₁, log L₂₂, L₃₁, …)

Each φ is one covariance and each covariance one φ: there are d(d + 1)/2 numbers, none of which is without effect.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["covariance_of", "free_of"]


def free_of(covariance: Tensor, least: float) -> Tensor:
    """φ (…, d(d + 1)/2) of covariances (…, d, d), whose eigenvalues below `least` are taken as that.

    >>> free_of(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), 1e-9)
    tensor([0.6931, 0.0000, 0.0000])
    """
    values, vectors = torch.linalg.eigh(0.5 * (covariance + covariance.mT))
    factor = torch.linalg.cholesky((vectors * values.clamp_min(least).unsqueeze(-2)) @ vectors.mT)
    logarithms = factor.diagonal(dim1=-2, dim2=-1).log()
    row, column = torch.tril_indices(*covariance.shape[-2:], device=covariance.device)
    return (factor.tril(-1) + torch.diag_embed(logarithms))[..., row, column]


def covariance_of(free: Tensor, size: int) -> Tensor:
    """Σ (…, d, d) of φ (…, d(d + 1)/2), differentiable.

    >>> covariance_of(torch.tensor([0.0, 2.0, 0.0]), 2)
    tensor([[1., 2.],
            [2., 5.]])
    """
    row, column = torch.tril_indices(size, size, device=free.device)
    place = torch.full((size, size), len(row), device=free.device)
    place[row, column] = torch.arange(len(row), device=free.device)
    lower = torch.cat([free, free.new_zeros(*free.shape[:-1], 1)], -1)[..., place]
    factor = lower.tril(-1) + torch.diag_embed(lower.diagonal(dim1=-2, dim2=-1).exp())
    return factor @ factor.mT
