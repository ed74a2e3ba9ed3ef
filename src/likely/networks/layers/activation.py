"""Activations φ by name, and the gain that keeps the variance of their inputs from layer to layer.

gain(φ)² = 1 / E[φ(z)²],   z standard normal:   1 for identity, √2 for ReLU
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from ...core.errors import SpecError

__all__ = ["ACTIVATIONS", "Erf", "Sine", "activation", "gain"]


class Sine(nn.Module):
    """sin(x).

    >>> Sine()(torch.zeros(2))
    tensor([0., 0.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return x.sin()


class Erf(nn.Module):
    """erf(x): a sigmoid whose infinitely wide networks have kernels in closed form.

    >>> Erf()(torch.zeros(2))
    tensor([0., 0.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return torch.erf(x)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "identity": nn.Identity,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "sin": Sine,
    "erf": Erf,
}
"""Every activation a spec can name; each is a module without parameters."""


def activation(name: str) -> nn.Module:
    """The activation with this name, as a module.

    >>> activation("tanh")
    Tanh()
    """
    if name not in ACTIVATIONS:
        raise SpecError(f"Unknown activation {name!r}; known: {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


@cache
def gain(name: str) -> float:
    """What the standard deviation of weights is multiplied by so that layer after layer keeps the variance of signals.

    >>> round(gain("relu") ** 2, 6)
    2.0
    """
    z = torch.linspace(-12.0, 12.0, 24_001, dtype=torch.float64, device="cpu")  # whatever the default device
    density = torch.exp(-0.5 * z.square())
    function = activation(name)
    kept = [float((density * (function(s * z) / s).square()).sum() / density.sum()) for s in (1.0, 1e6)]
    return max(kept) ** -0.5
