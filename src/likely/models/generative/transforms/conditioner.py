"""Networks inside the layers of a flow: from numbers that stay (and a condition) to parameters of those that move.

A layer starts near the identity: what the network gives first is small.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ....networks.base import as_network

__all__ = ["Constant", "conditioner", "start_small"]

GAIN = 0.1
"""What the last matrix of a network is multiplied by at the start."""


class Constant(nn.Module):
    """Parameters that depend on nothing.

    >>> Constant(3)(torch.zeros(5, 0)).shape
    torch.Size([1, 3])
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(1, size))

    def forward(self, x: Tensor) -> Tensor:
        return self.values


class _OfCondition(nn.Module):
    """A network of the condition alone."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        return self.network(condition)


def conditioner(network: Any, in_shape: tuple[int, ...], outputs: int, condition: tuple[int, ...] | None) -> nn.Module:
    """A module x → raw parameters, or (x, condition) → raw parameters; without inputs, what is left of that.

    >>> from likely.networks import MLP
    >>> conditioner(MLP((8,)), (2,), 6, (3,))(torch.zeros(5, 2), torch.zeros(5, 3)).shape
    torch.Size([5, 6])
    """
    spec = as_network(network)
    if 0 in in_shape:
        return Constant(outputs) if condition is None else _OfCondition(start_small(spec.build(condition, outputs)))
    if condition is None:
        return start_small(spec.build(in_shape, outputs))
    return start_small(spec.build(in_shape, outputs, condition))  # type: ignore[call-arg]


@torch.no_grad()
def start_small(network: nn.Module, gain: float = GAIN) -> nn.Module:
    """The network, with its last matrix (the last weights that it lists) made smaller.

    >>> layer = start_small(nn.Linear(1, 1, bias=False), 0.0)
    >>> layer.weight.abs().tolist()
    [[0.0]]
    """
    matrices = [parameter for parameter in network.parameters() if parameter.ndim > 1]
    if matrices:
        matrices[-1].mul_(gain)
    return network
