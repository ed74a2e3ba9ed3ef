"""The divergence of a vector field at each row: the trace of its Jacobian.

tr ∂f/∂x = Σⱼ ∂fⱼ/∂xⱼ        by a pass back for each number of a row, exactly
         = E vᵀ(∂f/∂x)v      with random v, E vvᵀ = I (Hutchinson): one pass back for each v
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import vjp, vmap

from ...core.random import current_generator

__all__ = ["divergence", "signs_like"]


def divergence(field: Callable[[Tensor], Tensor], x: Tensor, probe: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """f(x), of the shape of x, and its divergence at each row, (n,); by a probe v of the shape of x if there is one.

    >>> divergence(lambda x: x**2, torch.tensor([[1.0, 2.0]]))
    (tensor([[1., 4.]]), tensor([6.]))
    """
    value, pull = vjp(field, x)  # type: ignore[misc]
    if probe is not None:
        return value, (pull(probe)[0] * probe).flatten(1).sum(1)
    size = x[0].numel()
    basis = torch.eye(size, dtype=x.dtype, device=x.device).view(size, 1, *x.shape[1:]).expand(size, *x.shape)
    (rows,) = vmap(pull)(basis)  # (size, n, *shape)
    return value, (rows * basis).flatten(2).sum((0, 2))


def signs_like(x: Tensor) -> Tensor:
    """Random signs of the shape of x: the probe with the least variance."""
    return torch.empty_like(x).bernoulli_(0.5, generator=current_generator(x.device)) * 2 - 1
