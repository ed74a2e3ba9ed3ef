"""A floor under the eigenvalues of covariance matrices.

argmax −½ log|Σ| − ½ tr(Σ⁻¹S)  over all Σ with eigenvalues ≥ f   is   S with its eigenvalues clamped at f
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["at_least"]

ROUNDING = 1e-13
"""The least ratio of a matrix's eigenvalues that float64 can tell from 0."""


def at_least(matrices: Tensor, floor: float) -> tuple[Tensor, Tensor]:
    """Symmetric matrices (…, d, d) with eigenvalues of at least `floor`, and which of them were changed.

    >>> at_least(torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64), 0.5)
    (tensor([[1.2500, 0.7500],
            [0.7500, 1.2500]], dtype=torch.float64), tensor(True))
    """
    d = matrices.shape[-1]
    # A trace bounds the largest eigenvalue; below this many of its digits nothing is known.
    least = (ROUNDING / d * matrices.diagonal(dim1=-2, dim2=-1).sum(-1)).clamp_min(max(floor, 1e-300))
    eye = torch.eye(d, dtype=matrices.dtype)
    _, low = torch.linalg.cholesky_ex(matrices - least[..., None, None] * eye)  # cheaper than eigenvalues
    if not bool(low.any()):
        return matrices, low.bool()
    flat, bounds = matrices.reshape(-1, d, d).clone(), least.reshape(-1, 1)
    which = low.reshape(-1).nonzero().ravel()
    values, vectors = torch.linalg.eigh(flat[which])
    held = values.maximum(bounds[which])
    flat[which] = (vectors * held.unsqueeze(-2)) @ vectors.mT
    return flat.reshape(matrices.shape), low.bool()
