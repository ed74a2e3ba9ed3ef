"""Kernels of infinitely wide dense networks, layer by layer.

    K⁰ = σb² + σw² x·x′/d;      Kˡ⁺¹ = σb² + σw² κ(Kˡ),      Θ⁰ = K⁰,  Θˡ⁺¹ = Kˡ⁺¹ + σw² Θˡ ⊙ κ̇(Kˡ)

K is the covariance of the outputs of random networks (the network Gaussian process), Θ the kernel that gradient
descent follows (the neural tangent kernel). `duals.py` has κ and κ̇.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..core.errors import SpecError
from ..networks import Network
from .duals import dual, own_dual

__all__ = ["Recursion", "dense_layers"]


def dense_layers(owner: Any, network: Network) -> tuple[int, str]:
    """The number of hidden layers and the activation of a plain dense network; others have no known limit here."""
    known = network.get_params(deep=False)
    extras = {name: known.get(name) for name in ("norm", "residual", "dropout") if known.get(name)}
    if "hidden" not in known or "activation" not in known or extras:
        fault = f"has {next(iter(extras))}" if extras else "is not one"
        raise SpecError(
            f"{type(owner).__name__}: the limit of infinite width is known for plain dense networks, and "
            f'{network!r} {fault}; use width="finite".'
        )
    return len(known["hidden"]), known["activation"]


class Recursion:
    """K and Θ after all layers, for rows x and other rows.

    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    >>> Recursion(1, "relu", 2.0, 0.0).covariance(rows).diagonal()
    tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(self, depth: int, activation: str, weight_variance: float, bias_variance: float) -> None:
        self.depth, self.activation = depth, activation
        self.weight_variance, self.bias_variance = weight_variance, bias_variance

    def covariance(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """K of all pairs; κ̇ is never computed."""
        return self._layers(x, other, tangent=False)

    def tangent(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """Θ of all pairs."""
        return self._layers(x, other, tangent=True)

    def diagonal(self, x: Tensor, *, tangent: bool) -> Tensor:
        """K or Θ of each row with itself."""
        q = self._affine(x.reshape(len(x), -1).square().mean(1))
        total = q
        for _ in range(self.depth):
            kappa, derivative = own_dual(self.activation, q)
            q = self._affine(kappa)
            total = q + self.weight_variance * total * derivative() if tangent else q
        return total

    def _layers(self, x: Tensor, other: Tensor | None, *, tangent: bool) -> Tensor:
        rows = x.reshape(len(x), -1)
        columns = rows if other is None else other.reshape(len(other), -1)
        width = rows.shape[1]
        q = self._affine(rows.square().sum(1) / width)
        p = q if other is None else self._affine(columns.square().sum(1) / width)
        covariance = self._affine(rows @ columns.T / width)
        total = covariance
        for _ in range(self.depth):
            kappa, derivative = dual(self.activation, q, p, covariance)
            covariance = self._affine(kappa)
            total = covariance + self.weight_variance * total * derivative() if tangent else covariance
            q, p = self._variance(q), (p if other is None else self._variance(p))
            p = q if other is None else p
        if other is None:
            total = 0.5 * (total + total.T)
            # where the angle is 0, arccos would lose half of the digits
            total.diagonal().copy_(self.diagonal(x, tangent=tangent))
        return total

    def _variance(self, q: Tensor) -> Tensor:
        return self._affine(own_dual(self.activation, q)[0])

    def _affine(self, value: Tensor) -> Tensor:
        return self.bias_variance + self.weight_variance * value
