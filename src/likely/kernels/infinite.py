"""Kernels of infinitely wide dense networks, layer by layer.

    K⁰ = σb² + σw² x·x′/d;      Kˡ⁺¹ = σb² + σw² κ(Kˡ),      Θ⁰ = K⁰,  Θˡ⁺¹ = Kˡ⁺¹ + σw² Θˡ ⊙ κ̇(Kˡ)

K is the covariance of the outputs of random networks (the network Gaussian process), Θ the kernel that gradient
descent follows (the neural tangent kernel). `duals.py` has κ and κ̇.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..networks import Network
from .duals import dual

__all__ = ["Recursion", "dense_layers"]


def dense_layers(owner: Any, network: Network) -> tuple[int, str]:
    """The number of hidden layers and the activation of a plain dense network; others have no known limit here."""
    known = network.get_params(deep=False)
    extras = {name: known.get(name) for name in ("norm", "residual", "dropout") if known.get(name)}
    if "hidden" not in known or "activation" not in known or extras:
        found = f"{network!r}" + (f" has {next(iter(extras))}" if extras else "")
        raise SpecError(
            f"{type(owner).__name__}: the limit of infinite width is known for plain dense networks, and {found} is "
            'none; use width="finite".'
        )
    return len(known["hidden"]), known["activation"]


class Recursion:
    """K and Θ after all layers, for rows x and other rows.

    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    >>> covariance, tangent = Recursion(1, "relu", 2.0, 0.0)(rows, None)
    >>> covariance.diagonal()
    tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(self, depth: int, activation: str, weight_variance: float, bias_variance: float) -> None:
        self.depth, self.activation = depth, activation
        self.weight_variance, self.bias_variance = weight_variance, bias_variance

    def __call__(self, x: Tensor, other: Tensor | None) -> tuple[Tensor, Tensor]:
        rows = x.reshape(len(x), -1)
        columns = rows if other is None else other.reshape(len(other), -1)
        width = rows.shape[1]
        q = self._affine(rows.square().sum(1) / width)
        p = q if other is None else self._affine(columns.square().sum(1) / width)
        covariance = self._affine(rows @ columns.T / width)
        tangent = covariance
        for _ in range(self.depth):
            kappa, slope = dual(self.activation, q, p, covariance)
            covariance = self._affine(kappa)
            tangent = covariance + self.weight_variance * tangent * slope
            q, p = self._variance(q), (p if other is None else self._variance(p))
            p = q if other is None else p
        if other is None:
            covariance, tangent = (0.5 * (each + each.T) for each in (covariance, tangent))
            for each, own in zip((covariance, tangent), self.diagonal(x), strict=True):
                each.diagonal().copy_(own)  # where the angle is 0 and arccos would lose half of the digits
        return covariance, tangent

    def diagonal(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """K and Θ of each row with itself."""
        q = self._affine(x.reshape(len(x), -1).square().mean(1))
        tangent = q
        for _ in range(self.depth):
            kappa, slope = self._own(q)
            q = self._affine(kappa)
            tangent = q + self.weight_variance * tangent * slope
        return q, tangent

    def _variance(self, q: Tensor) -> Tensor:
        return self._affine(self._own(q)[0])

    def _own(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """κ and κ̇ of a variable with itself; one row at a time would be exact too, but equal values are one."""
        unique, place = torch.unique(q, return_inverse=True)
        pairs = [dual(self.activation, each, each, each.unsqueeze(0)) for each in unique.split(1)]
        kappa, slope = (torch.cat([pair[side].reshape(1) for pair in pairs]) for side in (0, 1))
        return kappa[place], slope[place]

    def _affine(self, value: Tensor) -> Tensor:
        return self.bias_variance + self.weight_variance * value
