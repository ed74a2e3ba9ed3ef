"""K = LLᵀ of a kernel matrix that rounding may have made singular: K + jitter·I, where jitter is 0 if it can be."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from ..core.errors import LikelyWarning, TrainingError

__all__ = ["cholesky"]

JITTERS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""What may be added to the diagonal, as shares of its mean: beyond the last, another model would be fitted."""


def cholesky(matrix: Tensor, remedy: str) -> tuple[Tensor, float]:
    """The lower factor of a symmetric matrix, and the jitter that was added to its diagonal.

    Jitter is added only where the matrix is singular to rounding, with a warning that says how much; a matrix that
    would need more than a millionth of its diagonal is refused. Both messages end with the `remedy`.

    >>> factor, jitter = cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]), "raise alpha")
    >>> factor, jitter
    (tensor([[2., 0.],
             [1., 1.]]), 0.0)
    """
    diagonal = matrix.detach().diagonal()
    level = float(diagonal.mean())
    for share in (0.0, *JITTERS):
        jitter = share * level
        factor, failed = torch.linalg.cholesky_ex(matrix + jitter * _identity(matrix) if share else matrix)
        if not failed and _resolved(factor.detach().diagonal(), diagonal):
            if share:
                warnings.warn(
                    f"The kernel matrix of these {len(matrix)} rows is singular to rounding; {jitter:.1e} ({share:.0e} "
                    f"of its mean) was added to its diagonal. To avoid that, {remedy}.",
                    LikelyWarning,
                    stacklevel=4,
                )
            return factor, jitter
    raise TrainingError(
        f"The kernel matrix of these {len(matrix)} rows is not positive definite, even with {JITTERS[-1]:.0e} of its "
        f"mean ({level:.3g}) added to its diagonal; {remedy}."
    )


def _resolved(pivots: Tensor, diagonal: Tensor) -> bool:
    """Whether every pivot is more than what rounding leaves of a zero."""
    rounding = len(pivots) * torch.finfo(pivots.dtype).eps * float(diagonal.max())
    return bool(pivots.square().min() > rounding)


def _identity(matrix: Tensor) -> Tensor:
    return torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
