"""Marginals and conditionals of a joint Gaussian over (a, b), with covariance Σ and precision Λ = Σ⁻¹.

p(a)      mean μ_a                                 covariance Σ_aa
p(a | b)  mean μ_a + Σ_ab Σ_bb⁻¹ (b − μ_b)         covariance Σ_aa − Σ_ab Σ_bb⁻¹ Σ_ba
          mean μ_a − Λ_aa⁻¹ Λ_ab (b − μ_b)         precision  Λ_aa
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.distributions import MultivariateNormal

from ..core.errors import DataError

__all__ = ["condition", "factor_or_nan", "marginal"]


def marginal(joint: MultivariateNormal, index: int | Sequence[int]) -> MultivariateNormal:
    """p of the coordinates in `index`, in that order; the others are integrated out.

    >>> joint = MultivariateNormal(torch.tensor([1.0, 2.0]), torch.tensor([[4.0, 1.0], [1.0, 9.0]]))
    >>> marginal(joint, 1).mean, marginal(joint, 1).variance
    (tensor([2.]), tensor([9.]))
    """
    kept = _coordinates(joint, index)
    covariance = joint.covariance_matrix[..., kept, :][..., kept]
    return MultivariateNormal(joint.loc[..., kept], covariance)


def condition(
    joint: MultivariateNormal,
    index: int | Sequence[int],
    values: ArrayLike | Tensor,
    form: Literal["covariance", "precision"] = "covariance",
) -> MultivariateNormal:
    """p of the other coordinates, in their order, once those in `index` are known to be `values`.

    `values` may have leading axes, which become a batch. Both forms give the same answer; the precision form solves
    in the dimension of what is left unknown, the covariance form factors the joint once.

    >>> joint = MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]]))
    >>> posterior = condition(joint, index=1, values=2.0)
    >>> posterior.mean, posterior.variance
    (tensor([1.]), tensor([0.7500]))
    """
    known = _coordinates(joint, index)
    unknown = [i for i in range(joint.event_shape[0]) if i not in known]
    if not unknown:
        raise DataError(f"index names all {len(known)} coordinates; leave at least one to condition.")
    observed = torch.as_tensor(values, dtype=joint.loc.dtype)
    if isinstance(index, int):
        observed = observed.unsqueeze(-1)
    if observed.shape[-1:] != (len(known),):
        raise DataError(
            f"values must end in one number for each of the {len(known)} coordinates in index; "
            f"found shape {tuple(observed.shape)}."
        )
    surprise = (observed - joint.loc[..., known]).unsqueeze(-1)
    mean = joint.loc[..., unknown]
    if form == "covariance":
        order = known + unknown
        factor = torch.linalg.cholesky(joint.covariance_matrix[..., order, :][..., order])
        k = len(known)
        whitened = torch.linalg.solve_triangular(factor[..., :k, :k], surprise, upper=False)
        mean = mean + (factor[..., k:, :k] @ whitened).squeeze(-1)
        return MultivariateNormal(mean, scale_tril=factor[..., k:, k:])
    if form == "precision":
        precision = joint.precision_matrix[..., unknown, :]
        inner = precision[..., unknown]
        shift = torch.cholesky_solve(precision[..., known] @ surprise, torch.linalg.cholesky(inner))
        return MultivariateNormal(mean - shift.squeeze(-1), precision_matrix=inner)
    raise DataError(f'form must be "covariance" or "precision"; found {form!r}.')


def _coordinates(joint: MultivariateNormal, index: int | Sequence[int]) -> list[int]:
    size = joint.event_shape[0]
    chosen = [index] if isinstance(index, int) else [int(i) for i in index]
    if not chosen or any(not -size <= i < size for i in chosen) or len({i % size for i in chosen}) < len(chosen):
        raise DataError(f"index must name different coordinates from 0 to {size - 1}; found {index!r}.")
    return [i % size for i in chosen]


def factor_or_nan(covariance: Tensor) -> Tensor:
    """L with LLᵀ = Σ of each matrix (…, d, d); NaN throughout where Σ is not positive definite.

    So a sampler that strays there meets no number, which it takes for no mass, instead of an error.

    >>> factor_or_nan(torch.tensor([[[4.0]], [[-1.0]]])).ravel()
    tensor([2., nan])
    """
    factor, info = torch.linalg.cholesky_ex(covariance)
    return torch.where((info > 0)[..., None, None], torch.nan, factor)
