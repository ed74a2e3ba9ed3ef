"""Change of variables: the density of y = f(x) for an invertible f.

    log p_y(y) = log p_x(x) − log |det ∂f/∂x|,    x = f⁻¹(y)

torch's transforms know their log-determinants; a map that does not gets it from its Jacobian, by automatic
differentiation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Transform, TransformedDistribution, constraints
from torch.func import jacrev, vmap

from ..core.errors import DataError

__all__ = ["change_of_variables", "log_det"]

Map = Callable[[Tensor], Tensor]


def log_det(transform: Transform | Map, x: Tensor) -> Tensor:
    """log |det ∂f/∂x| at each x (…, d): the transform's closed form, or that of the Jacobian.

    A plain function maps one vector (d,) to one (d,). A transform of single numbers is summed over the last axis.

    >>> from torch.distributions import ExpTransform
    >>> x = torch.tensor([[0.0, 1.0], [3.0, -0.5]])
    >>> log_det(ExpTransform(), x)
    tensor([1.0000, 2.5000])
    >>> log_det(lambda one: one.exp(), x)
    tensor([1.0000, 2.5000])
    """
    if isinstance(transform, Transform):
        if transform.domain.event_dim > 1:
            raise DataError(f"{type(transform).__name__} maps matrices; log_det reads vectors (…, d).")
        try:
            log_det = transform.log_abs_det_jacobian(x, transform(x))
        except NotImplementedError:
            return _by_jacobian(transform, x)
        return log_det.sum(-1) if transform.domain.event_dim == 0 else log_det
    return _by_jacobian(transform, x)


def change_of_variables(
    base: Distribution, transform: Transform | Map, inverse: Map | None = None
) -> TransformedDistribution:
    """The distribution of f(x), x ~ base, by a torch transform or by a function of vectors (d,) and its inverse.

    >>> from torch.distributions import ExpTransform, LogNormal, MultivariateNormal, Normal
    >>> change_of_variables(Normal(0.0, 1.0), ExpTransform()).log_prob(torch.tensor(2.0))
    tensor(-1.8523)
    >>> LogNormal(0.0, 1.0).log_prob(torch.tensor(2.0))
    tensor(-1.8523)
    >>> base = MultivariateNormal(torch.zeros(2), torch.eye(2))
    >>> there = lambda x: torch.stack([x[0], x[1] + x[0] ** 2])
    >>> back = lambda y: torch.stack([y[0], y[1] - y[0] ** 2])
    >>> shear = change_of_variables(base, there, back)
    >>> shear.log_prob(torch.tensor([1.0, 1.0]))  # from (1, 0), with a determinant of 1
    tensor(-2.3379)
    """
    if isinstance(transform, Transform):
        if not transform.bijective:
            raise DataError(
                f"{type(transform).__name__} is not one-to-one, so the density cannot be carried over by it."
            )
        return TransformedDistribution(base, [transform])
    if not callable(transform) or not callable(inverse):
        raise DataError("transform must be a torch transform, or a function together with its inverse.")
    if len(base.event_shape) != 1:
        raise DataError(
            f"base must be a distribution of vectors for a map of vectors; one draw of it has shape "
            f"{tuple(base.event_shape)}."
        )
    return TransformedDistribution(base, [_Function(transform, inverse)])


class _Function(Transform):
    """A function of vectors and its inverse as torch's transform."""

    domain = constraints.real_vector
    codomain = constraints.real_vector
    bijective = True

    def __init__(self, forward: Map, backward: Map) -> None:
        super().__init__()
        self.forward, self.backward = forward, backward

    def _call(self, x: Tensor) -> Tensor:
        return _by_rows(self.forward, x)

    def _inverse(self, y: Tensor) -> Tensor:
        return _by_rows(self.backward, y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _by_jacobian(self.forward, x)


def _by_rows(function: Map, x: Tensor) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    return vmap(function)(flat).reshape(x.shape)


def _by_jacobian(function: Any, x: Tensor) -> Tensor:
    if x.ndim == 0:
        raise DataError("x must hold vectors (…, d); found one number.")
    jacobian = vmap(jacrev(function))(x.reshape(-1, x.shape[-1]))
    if jacobian.shape[1:] != (x.shape[-1], x.shape[-1]):
        raise DataError(
            f"The map takes {x.shape[-1]} numbers and gives a result of shape {tuple(jacobian.shape[1:-1])}; a "
            "determinant needs as many out as in."
        )
    return torch.linalg.slogdet(jacobian).logabsdet.reshape(x.shape[:-1])
