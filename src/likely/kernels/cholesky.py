"""K = LLᵀ of a kernel matrix that rounding may have made singular: a little is then added to its diagonal, and said.

LLᵀ = K + ε·mean(diag K)·I,      ε = 0 where that does, else the first of a ladder that does
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from ..core.errors import LikelyWarning, TrainingError
from ..core.interrupt import interruptible

__all__ = ["COARSE", "FINE", "ROUGHER", "cholesky", "factored", "inverse_of", "report_jitter", "root_of"]

FINE = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""ε of one solve: beyond the last, another model would be fitted."""
COARSE = (1e-10, 1e-8, 1e-6, 1e-4)
"""ε where hyperparameters are still being learned, and many matrices are met on the way."""
ROUGHER = "let the noise be learned or larger, drop repeated rows, or take a rougher kernel such as Matern()"
"""What helps where the matrix of a Gaussian process is singular."""
ROUNDING = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-8, 1e-6)
"""ε of a covariance that may be singular by right, such as that of rows which were observed."""


def cholesky(
    matrix: Tensor, remedy: str, jitters: tuple[float, ...] = FINE, *, zeros: bool = False
) -> tuple[Tensor, float]:
    """The lower factor of a symmetric matrix, and the ε that was needed; an error where none of `jitters` suffices.

    The message ends with the `remedy`. With `zeros`, a matrix of zeros, of a kernel that knows its functions, has the
    factor 0.

    >>> factor, jitter = cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]), "raise alpha")
    >>> factor, jitter
    (tensor([[2., 0.],
            [1., 1.]]), 0.0)
    """
    level = float(matrix.detach().diagonal().mean())
    if not torch.isfinite(matrix.detach().sum()):
        raise TrainingError(
            "The kernel matrix has entries that are not finite: X or the kernel's hyperparameters are too large; "
            "standardise X first."
        )
    if zeros and level == 0.0:
        return torch.zeros_like(matrix), 0.0
    factor_and_jitter = factored(matrix, jitters, level)
    if factor_and_jitter is None:
        raise TrainingError(
            f"The kernel matrix of {len(matrix)} rows is not positive definite, even with {jitters[-1]:.0e} of its "
            f"mean diagonal ({level:.3g}) added; {remedy}."
        )
    return factor_and_jitter


def report_jitter(jitter: float, remedy: str, stacklevel: int = 4) -> None:
    """Say what was added to the diagonal, if anything was."""
    if jitter:
        warnings.warn(
            f"The kernel matrix is singular to working precision; {jitter:.0e} of its mean diagonal was added to the "
            f"diagonal. To avoid that, {remedy}.",
            LikelyWarning,
            stacklevel=stacklevel,
        )


def root_of(covariance: Tensor, level: float) -> Tensor:
    """A lower-triangular root of a posterior covariance, which may be singular; `level` is the prior's variance."""
    factor_and_jitter = factored(covariance, ROUNDING, level, singular=True)
    if factor_and_jitter is not None:
        return factor_and_jitter[0]
    raise TrainingError(
        "The posterior covariance at these rows is not positive semidefinite to working precision; leave out rows "
        "that repeat, or take a rougher kernel such as Matern()."
    )


def inverse_of(factor: Tensor) -> Tensor:
    """(LLᵀ)⁻¹ from L.

    >>> inverse_of(torch.tensor([[2.0]])).item()
    0.25
    """
    return interruptible(float(len(factor)) ** 3, torch.cholesky_inverse, factor)


def factored(
    matrix: Tensor, jitters: tuple[float, ...], level: float, *, singular: bool = False
) -> tuple[Tensor, float] | None:
    """L of matrix + ε·level·I and ε, the first of 0 and `jitters` that suffices; None if none does.

    Every pivot must be more than what rounding leaves of a zero, unless the matrix may be `singular`.

    >>> factored(torch.ones(2, 2, dtype=torch.float64), (1e-10,), 1.0)[1]
    1e-10
    """
    rounding = len(matrix) * torch.finfo(matrix.dtype).eps * float(matrix.detach().diagonal().max())
    for jitter in (0.0, *jitters):
        shifted = matrix
        if jitter:
            shifted = matrix + jitter * level * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
        factor, failed = interruptible(float(len(matrix)) ** 3 / 3, torch.linalg.cholesky_ex, shifted)
        if not failed and (singular or bool(factor.detach().diagonal().square().min() > rounding)):
            return factor, jitter
    return None
