"""The module that inferences see: x → η, made of a network and the numbers of η that do not depend on x.

    η(x) = [ offset + unit · f(x; θ),  shared ]

`shared` are learned constants such as Normal's σ. A nonlinear network speaks in units of the target (offset and unit
are those of the data without x, and fixed); a linear one speaks in the target's own units, so that its weights are the
coefficients and a prior on them is the penalty of the textbooks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["Predictor", "is_linear"]


class Predictor(nn.Module):
    """η of a batch: (n, *positions, size). `positions` are set only where the network gives a row's numbers flat."""

    offset: Tensor | None
    unit: Tensor | None

    def __init__(
        self,
        network: nn.Module,
        shared: Tensor | None = None,
        offset: Tensor | None = None,
        unit: Tensor | None = None,
        positions: tuple[int, ...] = (),
        flatten: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.shared = None if shared is None else nn.Parameter(shared)
        self.positions = positions
        self.flatten = flatten
        self.register_buffer("offset", offset)
        self.register_buffer("unit", unit)

    @property
    def linear(self) -> nn.Linear | None:
        """The one linear layer, if η is linear in the parameters."""
        return self.network if is_linear(self.network) else None  # type: ignore[return-value]

    def forward(self, x: Tensor) -> Tensor:
        if self.flatten:
            x = x.flatten(1)
        eta = self.network(x)
        if self.positions:
            eta = eta.unflatten(-1, (*self.positions, eta.shape[-1] // math.prod(self.positions)))
        if self.unit is not None:
            eta = eta * self.unit
        if self.offset is not None:
            eta = eta + self.offset
        if self.shared is not None:
            eta = torch.cat([eta, self.shared.expand(*eta.shape[:-1], self.shared.shape[-1])], -1)
        return eta


def is_linear(module: nn.Module) -> bool:
    """Whether the module is W x + b and nothing more; a subclass of `nn.Linear` may compute anything.

    >>> is_linear(nn.Linear(2, 1)), is_linear(nn.Sequential(nn.Linear(2, 1)))
    (True, False)
    """
    return type(module) is nn.Linear
