"""K = LLᵀ of a kernel matrix that rounding may have made singular: K + jitter·I, where jitter is 0 if it can be."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from ..core.errors import LikelyWarning, TrainingError

__all__ = ["cholesky", "factored"]

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
    level = float(matrix.detach().diagonal().mean())
    found = factored(matrix, JITTERS, level)
    if found is None:
        raise TrainingError(
            f"The kernel matrix of these {len(matrix)} rows is not positive definite, even with {JITTERS[-1]:.0e} of "
            f"its mean ({level:.3g}) added to its diagonal; {remedy}."
        )
    factor, share = found
    if share:
        warnings.warn(
            f"The kernel matrix of these {len(matrix)} rows is singular to rounding; {share * level:.1e} ({share:.0e} "
            f"of its mean) was added to its diagonal. To avoid that, {remedy}.",
            LikelyWarning,
            stacklevel=4,
        )
    return factor, share * level


def factored(
    matrix: Tensor, shares: tuple[float, ...], level: float, *, singular: bool = False
) -> tuple[Tensor, float] | None:
    """L of matrix + share·level·I for the first share of 0 and `shares` that does, and that share; None if none does.

    Every pivot must be more than what rounding leaves of a zero, unless the matrix may be `singular`.

    >>> factored(torch.ones(2, 2, dtype=torch.float64), (1e-10,), 1.0)[1]
    1e-10
    """
    rounding = len(matrix) * torch.finfo(matrix.dtype).eps * float(matrix.detach().diagonal().max())
    for share in (0.0, *shares):
        shifted = matrix
        if share:
            shifted = matrix + share * level * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if not failed and (singular or bool(factor.detach().diagonal().square().min() > rounding)):
            return factor, share
    return None
