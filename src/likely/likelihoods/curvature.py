"""The first two derivatives of log p(y | η) with respect to η, for second-order methods.

score = ∂ log p / ∂η        information = −∂² log p / ∂η∂ηᵀ, made positive semidefinite
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["curvature", "hessian"]


def curvature(
    log_prob_of: Callable[[Tensor, Tensor], Tensor], eta: Tensor, y: Tensor, count: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """log p (n,), score (n, size) and information (n, size, size) of rows, by differentiating log p(y | η).

    With a `count` the information is that about the first numbers of η, the others held.

    Where −∂² log p is not positive semidefinite its eigenvalues are taken by absolute value, and where it vanishes but
    the score does not (a Laplace likelihood), the score's outer product stands in: both keep Newton going downhill.
    """
    size = eta.shape[-1] if count is None else count
    log_prob, score, second = hessian(log_prob_of, eta, y, size)
    information = -second
    if size == 1:
        information = information.abs()
    elif bool((torch.linalg.cholesky_ex(information).info > 0).any()):
        values, vectors = torch.linalg.eigh(0.5 * (information + information.mT))
        information = (vectors * values.abs().unsqueeze(-2)) @ vectors.mT
    trace = information.diagonal(dim1=-2, dim2=-1).sum(-1)
    own = score[..., :size]
    flat = trace < 1e-8 * own.square().sum(-1)
    outer = own.unsqueeze(-1) * own.unsqueeze(-2)
    return log_prob, score, torch.where(flat[..., None, None], outer, information)


def hessian(
    log_prob_of: Callable[[Tensor, Tensor], Tensor], eta: Tensor, y: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """log p (n,), ∂ log p / ∂η (n, size) and ∂² log p / ∂η∂ηᵀ (n, count, count) of the first numbers of η, as they are.

    >>> hessian(lambda eta, y: -0.5 * (y - eta[:, 0]) ** 2, torch.zeros(1, 1), torch.ones(1), 1)
    (tensor([-0.5000]), tensor([[1.]]), tensor([[[-1.]]]))
    """
    with torch.enable_grad():
        point = eta.detach().requires_grad_()
        log_prob = log_prob_of(point, y)
        (score,) = torch.autograd.grad(log_prob.sum(), point, create_graph=True)
        rows = [_gradient(score[..., j], point)[..., :count] for j in range(count)]
    return log_prob.detach(), score.detach(), torch.stack(rows, -2)


def _gradient(column: Tensor, point: Tensor) -> Tensor:
    if not column.requires_grad:
        return torch.zeros_like(point)
    (gradient,) = torch.autograd.grad(column.sum(), point, retain_graph=True, allow_unused=True)
    return torch.zeros_like(point) if gradient is None else gradient.detach()
