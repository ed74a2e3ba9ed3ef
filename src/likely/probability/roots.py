"""The symmetric square root of a covariance: S with S S = Σ, a continuous function of Σ.

Other roots turn where eigenvalues meet, so that what is computed from fixed points z as S z would jump; this one does
not, and has a derivative also where eigenvalues are alike.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["symmetric_root"]


def symmetric_root(covariance: Tensor) -> Tensor:
    """Σ½ of positive semidefinite matrices (…, k, k), which may be singular.

    >>> symmetric_root(torch.tensor([[5.0, 4.0], [4.0, 5.0]])).round(decimals=4)
    tensor([[2., 1.],
            [1., 2.]])
    """
    return _Root.apply(covariance)


class _Root(torch.autograd.Function):
    """Σ½ of each row; Σ may be singular.

    Its change solves S dS + dS S = dΣ, in the basis of eigenvectors dSᵢⱼ = dΣᵢⱼ / (sᵢ + sⱼ): also where eigenvalues are
    alike, as those of classes that a row knows nothing of, and 0 where both are 0.
    """

    @staticmethod
    def forward(ctx: Any, covariance: Tensor) -> Tensor:  # type: ignore[override]
        if covariance.shape[-1] == 1:
            values, vectors = covariance[..., 0], torch.ones_like(covariance)
        else:
            values, vectors = torch.linalg.eigh(0.5 * (covariance + covariance.mT))
        roots = values.clamp_min(0.0).sqrt()
        ctx.save_for_backward(roots, vectors)
        return (vectors * roots.unsqueeze(-2)) @ vectors.mT

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        roots, vectors = ctx.saved_tensors
        sums = roots.unsqueeze(-1) + roots.unsqueeze(-2)
        inner = vectors.mT @ gradient @ vectors
        return vectors @ torch.where(sums > 0, inner / torch.where(sums > 0, sums, 1.0), 0.0) @ vectors.mT
