"""Coordinates φ of parameters, in which a posterior is easier to travel: θ = centre + Wφ.

    log p̃(φ) = log p(centre + Wφ),      ∇_φ log p̃ = Wᵀ ∇_θ log p

W is the identity, diagonal, or a matrix; one with fewer columns than rows leaves out directions that nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["CoordinateDensity", "Coordinates", "ValueAndGrad"]

ValueAndGrad = Callable[[Tensor], tuple[Tensor, Tensor]]
"""log p and its gradient at many points: (k, d) → (k,), (k, d)."""


@dataclass(frozen=True)
class Coordinates:
    """The centre (d,) and W: a matrix (d, m), the diagonal of one (d,), or None for the identity.

    >>> turned = Coordinates(torch.tensor([1.0, 0.0]), torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> turned.point(torch.tensor([[1.0, 1.0]]))
    tensor([[3., 1.]])
    """

    centre: Tensor
    factor: Tensor | None = None

    @property
    def size(self) -> int:
        """The number of entries of φ, m."""
        return len(self.centre) if self.factor is None else self.factor.shape[-1]

    @property
    def dense(self) -> bool:
        """Whether W is a matrix."""
        return self.factor is not None and self.factor.ndim == 2

    def point(self, phi: Tensor) -> Tensor:
        """θ of many φ: (k, m) → (k, d)."""
        if self.factor is not None and self.dense:
            return torch.addmm(self.centre, phi, self.factor.T)
        return self.centre + self.spread(phi)

    def spread(self, phi: Tensor) -> Tensor:
        """Wφ."""
        if self.factor is None:
            return phi
        return phi @ self.factor.T if self.dense else phi * self.factor

    def pull(self, gradient: Tensor) -> Tensor:
        """Wᵀg: the gradient with respect to φ."""
        if self.factor is None:
            return gradient
        return gradient @ self.factor if self.dense else gradient * self.factor

    def log_det(self) -> Tensor:
        """log |det W|, of a W that is square."""
        if self.factor is None:
            return self.centre.new_zeros(())
        return torch.linalg.slogdet(self.factor).logabsdet if self.dense else self.factor.abs().log().sum()


class Target(Protocol):
    """A log-density of θ that knows its gradient."""

    def __call__(self, theta: Tensor) -> Tensor: ...

    def value_and_grad(self, theta: Tensor) -> tuple[Tensor, Tensor]: ...


class CoordinateDensity:
    """log p as a function of φ; −∞ where it is not a number. Samplers ask it as they ask any log-density."""

    def __init__(self, target: Target, coordinates: Coordinates) -> None:
        self.target, self.coordinates = target, coordinates

    def __call__(self, phi: Tensor) -> Tensor:
        value = self.target(self.coordinates.point(phi)).double()
        return torch.where(value < torch.inf, value, -torch.inf)  # NaN fails the comparison

    def value_and_grad(self, phi: Tensor) -> tuple[Tensor, Tensor]:
        """The value and the gradient in φ; samplers treat what is not a number as no mass."""
        value, gradient = self.target.value_and_grad(self.coordinates.point(phi))
        return value, self.coordinates.pull(gradient)
