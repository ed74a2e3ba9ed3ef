"""Coupling: some columns stay, and say how the others move.

    z = [f(x_b; network(x_a)), x_a],      log |det| = Σ log f′

Both ways cost one pass through the network. Columns that stayed come last, so that the next layer moves them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import _Elementwise
from .bijection import Bijection, per_row
from .conditioner import conditioner

__all__ = ["Coupling"]


class Coupling(Bijection):
    """The first `kept` of the columns stay; the elementwise map moves the others.

    >>> from likely.networks import MLP
    >>> from likely.models.generative.transforms import Affine
    >>> layer = Coupling(Affine(), 3, 1, MLP((8,)))
    >>> x = torch.randn(4, 3)
    >>> z, log_det = layer(x)
    >>> torch.allclose(layer.inverse(z), x, atol=1e-5), log_det.shape
    (True, torch.Size([4]))
    """

    def __init__(
        self, map: _Elementwise, width: int, kept: int, network: Any, condition: tuple[int, ...] | None = None
    ) -> None:
        super().__init__()
        self.map, self.sizes = map, [kept, width - kept]
        self.network = conditioner(network, (kept,), (width - kept) * map.size, condition)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        kept, moved = x.split(self.sizes, -1)
        z, log_gradient = self.map.forward(moved, self._raw(kept, condition))
        return torch.cat([z, kept], -1), per_row(log_gradient)

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        moved, kept = z.split(self.sizes[::-1], -1)
        return torch.cat([kept, self.map.inverse(moved, self._raw(kept, condition))], -1)

    def _raw(self, kept: Tensor, condition: Tensor | None) -> Tensor:
        return self.network(kept) if condition is None else self.network(kept, condition)
