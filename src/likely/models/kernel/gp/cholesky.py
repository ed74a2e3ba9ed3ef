"""K = LLᵀ, also where rounding has made K singular: then a little is added to its diagonal, and reported.

LLᵀ = K + ε·mean(diag K)·I,   ε = 0, 10⁻¹⁰, 10⁻⁸, 10⁻⁶ or 10⁻⁴
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from ....core.errors import LikelyWarning, TrainingError
from ....kernels.cholesky import factored

__all__ = ["cholesky", "report_jitter", "root_of"]

JITTERS = (1e-10, 1e-8, 1e-6, 1e-4)
ROUNDING = (1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-8, 1e-6)


def cholesky(matrix: Tensor) -> tuple[Tensor, float]:
    """L, and the ε that was needed; a `TrainingError` where the largest does not do.

    >>> factor, jitter = cholesky(torch.ones(2, 2, dtype=torch.float64))
    >>> jitter
    1e-10
    """
    level = float(matrix.diagonal().mean())
    if not torch.isfinite(matrix.sum()):
        raise TrainingError(
            "The kernel matrix has entries that are not finite: X or the kernel's numbers are too large; "
            "standardise X first."
        )
    if level == 0.0:  # a kernel of zeros is one that knows its functions
        return torch.zeros_like(matrix), 0.0
    found = factored(matrix, JITTERS, level)
    if found is not None:
        return found
    raise TrainingError(
        f"The kernel matrix of {len(matrix)} rows is not positive definite, even with {JITTERS[-1]:g} of its mean "
        "diagonal added: rows repeat or the kernel is too smooth for them. Let the noise be learned or larger, drop "
        "repeated rows, or take a rougher kernel such as Matern()."
    )


def root_of(covariance: Tensor, level: float) -> Tensor:
    """A lower-triangular root of a posterior covariance, which may be singular; `level` is the prior's variance."""
    found = factored(covariance, ROUNDING, level, singular=True)
    if found is not None:
        return found[0]
    raise TrainingError(
        "The posterior covariance at these rows is not positive semidefinite to working precision; leave out rows "
        "that repeat, or take a rougher kernel such as Matern()."
    )


def report_jitter(jitter: float) -> None:
    """Say what was added to the diagonal, if anything was."""
    if jitter:
        warnings.warn(
            f"The kernel matrix is singular to working precision; {jitter:g} of its mean diagonal was added to the "
            "diagonal. More noise, or a rougher kernel such as Matern(), makes that unnecessary.",
            LikelyWarning,
            stacklevel=4,
        )
