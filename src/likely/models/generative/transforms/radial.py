"""Radial: draw rows to a point, or push them away from it.

    z = x + β h (x − x₀),   h = 1/(α + r),   r = ‖x − x₀‖
    log |det| = (d − 1) log(1 + βh) + log(1 + βh − βr h²)

with α > 0 and β = softplus(β′) − α > −α, which keeps radii in order. The radius of z is r + βr/(α + r), a quadratic
equation in r: the inverse is closed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .base import Transform
from .bijection import Bijection

__all__ = ["Radial", "RadialMap"]

LEAST = 1e-3
"""The least of α."""


class Radial(Transform):
    """Layers that draw rows to a point each; `order` means nothing to them.

    Without a condition, their parameters are free and `network` is not used; with one, the network gives them.

    >>> from likely import Flow
    >>> Flow("radial", layers=16).layers
    16
    """


class RadialMap(Bijection):
    """One such point; `parameters_of` gives x₀, α and β without bounds, (n or 1, d + 2).

    >>> from likely.models.generative.transforms.conditioner import Constant
    >>> layer = RadialMap(3, Constant(5))
    >>> torch.allclose(layer.inverse(layer(torch.ones(2, 3))[0]), torch.ones(2, 3))
    True
    """

    def __init__(self, width: int, parameters_of: nn.Module) -> None:
        super().__init__()
        self.width, self.parameters_of = width, parameters_of

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        centre, alpha, beta = self._parts(x, condition)
        away = x - centre
        # the square root of 0 has no gradient: a row at the centre is moved by less than rounding
        radius = (away.square().sum(-1, keepdim=True) + torch.finfo(x.dtype).tiny).sqrt()
        h = 1 / (alpha + radius)
        stretch = beta * h
        around = torch.log1p(stretch) * (self.width - 1)
        return x + stretch * away, (around + torch.log1p(stretch * alpha * h)).squeeze(-1)

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        centre, alpha, beta = self._parts(z, condition)
        away = z - centre
        goal = away.norm(dim=-1, keepdim=True)
        half, product = 0.5 * (goal - alpha - beta), alpha * goal
        root = (half.square() + product).sqrt()
        radius = torch.where(half > 0, half + root, product / (root - half))  # no difference of nearly equal numbers
        return centre + away / (1 + beta / (alpha + radius))

    def _parts(self, x: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """x₀, α and β."""
        raw = self.parameters_of(x) if condition is None else self.parameters_of(x, condition)
        centre, a, b = raw.split([self.width, 1, 1], -1)
        alpha = softplus(a) + LEAST
        return centre, alpha, softplus(b + LEAST) - alpha
