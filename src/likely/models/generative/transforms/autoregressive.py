"""Autoregressive order: each column moves as the columns before it in an order say (MAF; with splines, NSF-AR).

    zᵢ = f(xᵢ; network(x_<ᵢ)),      log |det| = Σ log f′

One pass of a masked network gives all z from all x. The inverse goes column by column; since the hidden units of a
masked network are in order of what they see, each step computes only those that its new column decides, and all steps
together cost about one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ....networks.layers.walk import Walk
from ....networks.masked import masked_network
from .base import _Elementwise
from .bijection import Bijection, per_row
from .conditioner import start_small

__all__ = ["Autoregression"]


class Autoregression(Bijection):
    """All columns move, in this order.

    >>> from likely.models.generative.transforms import Affine
    >>> from likely.networks import MLP
    >>> layer = Autoregression(Affine(), (0, 1, 2), MLP((8,)))
    >>> x = torch.randn(4, 3)
    >>> torch.allclose(layer.inverse(layer(x)[0]), x, atol=1e-5)
    True
    """

    def __init__(self, map: _Elementwise, order: Sequence[int], network: Any, condition: int = 0) -> None:
        super().__init__()
        self.map, self.order = map, tuple(order)
        self.network = masked_network(network, range(len(order)), map.columns(len(order)), [self.order], condition)
        start_small(self.network.last)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z, log_gradient = self.map.forward(x, self.network(x, _flat(condition)))
        return z, per_row(log_gradient)

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        walk = Walk(self.network, len(z), _flat(condition))
        x = torch.empty_like(z)
        for column in walk.columns:
            x[:, column, None] = own = self.map.inverse(z[:, column, None], walk.next())
            walk.tell(own)
        return x


def _flat(condition: Tensor | None) -> Tensor | None:
    return condition if condition is None or condition.ndim == 2 else condition.flatten(1)
