"""Plain dense networks of many members by batched matrix products: no tracing, so small networks cost next to nothing.

H ← φ(X Wᵀ + b)   with X (members, n, d), W (members, units, d), b (members, units): one product for all members
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ...networks.layers.standardise import Statistics, standardised
from ..predictor import Predictor, is_linear

__all__ = ["batched"]

Forward = Callable[[Mapping[str, Tensor], Mapping[str, Tensor], Tensor], Tensor]


def batched(module: nn.Module) -> Forward | None:
    """η of all members from stacked parameters, buffers and rows; None if the network is not a plain dense one.

    >>> module = Predictor(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    >>> stacked = {name: torch.stack([value, value]) for name, value in module.named_parameters()}
    >>> batched(module)(stacked, {}, torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 2])
    """
    if not isinstance(module, Predictor):
        return None
    layers = module.plain_layers()
    if layers is None:
        return None

    def forward(parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Tensor) -> Tensor:
        eta = x.flatten(2) if module.flatten else x
        eta = eta if module.inputs is None else _standardised(buffers, eta)
        for name, layer in layers:
            if is_linear(layer):
                eta = _affine(eta, parameters[f"network.{name}weight"], parameters.get(f"network.{name}bias"))
            else:
                eta = layer(eta)
        if module.positions:
            eta = eta.unflatten(-1, (*module.positions, eta.shape[-1] // math.prod(module.positions)))
        if "unit" in buffers:
            eta = eta * _beside(buffers["unit"], eta)
        if "offset" in buffers:
            eta = eta + _beside(buffers["offset"], eta)
        if "shared" in parameters:
            shared = _beside(parameters["shared"], eta)
            eta = torch.cat([eta, shared.expand(*eta.shape[:-1], shared.shape[-1])], -1)
        return eta

    return forward


def _standardised(buffers: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """The inputs of each member in its units; rows that all members share are standardised once."""
    parts = [buffers.get(f"inputs.{name}") for name in Statistics._fields]
    if all(part is None or part.stride(0) == 0 for part in (x, *parts)):
        z = standardised(x[0], *(None if part is None else part[0] for part in parts))  # type: ignore[arg-type]
        return z.expand(len(x), *z.shape)
    return standardised(x, *(None if part is None else _beside(part, x) for part in parts))  # type: ignore[arg-type]


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b of each member, on the last axis of x."""
    rows = x.flatten(1, -2)
    out = rows @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), rows, weight.mT)
    return out if x.ndim == 3 else out.unflatten(1, x.shape[1:-1])


def _beside(value: Tensor, eta: Tensor) -> Tensor:
    """(members, …) with axes of length 1 for the rows (and positions) that it does not depend on."""
    return value.reshape(len(value), *(1 for _ in range(eta.ndim - value.ndim)), *value.shape[1:])
