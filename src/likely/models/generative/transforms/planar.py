"""Planar: push rows along one direction, as far as another direction says.

    z = x + û tanh(wᵀx + b),   log |det| = log(1 + ûᵀw (1 − tanh²(wᵀx + b)))

It is invertible where ûᵀw > −1, so û = u + (softplus(uᵀw) − 1 − uᵀw) w/‖w‖². The inverse has no closed form: a = wᵀx is
the root of the increasing function a + ûᵀw tanh(a + b) − wᵀz, found between brackets, and x = z − û tanh(a + b).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .base import Transform
from .bijection import Bijection

__all__ = ["Planar", "PlanarMap"]

HALVINGS, POLISH = 40, 4
"""Steps of bisection, and of Newton's method behind them."""


class Planar(Transform):
    """Layers that push rows along one direction each; `order` means nothing to them.

    Without a condition, their parameters are free and `network` is not used; with one, the network gives them.

    >>> from likely import Flow
    >>> Flow("planar", layers=16)
    Flow(layers=16, transform='planar')
    """


class PlanarMap(Bijection):
    """One such push; `parameters_of` gives w, u and b, (n or 1, 2d + 1).

    >>> from likely.models.generative.transforms.conditioner import Constant
    >>> layer = PlanarMap(3, Constant(7))
    >>> layer(torch.ones(2, 3))[0].shape
    torch.Size([2, 3])
    """

    def __init__(self, width: int, parameters_of: nn.Module) -> None:
        super().__init__()
        self.width, self.parameters_of = width, parameters_of

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        w, u, b = self._parts(x, condition)
        bent = ((x * w).sum(-1, keepdim=True) + b).tanh()
        gain = (u * w).sum(-1, keepdim=True)
        return x + u * bent, torch.log1p(gain * (1 - bent.square())).squeeze(-1)

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        w, u, b = self._parts(z, condition)
        gain, goal = (u * w).sum(-1, keepdim=True), (z * w).sum(-1, keepdim=True)
        low, high = goal - gain.abs(), goal + gain.abs()
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = middle + gain * (middle + b).tanh() < goal
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        a = 0.5 * (low + high)
        for _ in range(POLISH):
            bent = (a + b).tanh()
            step = (a + gain * bent - goal) / (1 + gain * (1 - bent.square())).clamp_min(1e-8)
            a = (a - step).clamp(low, high)
        return z - u * (a + b).tanh()

    def _parts(self, x: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """w, û and b."""
        raw = self.parameters_of(x) if condition is None else self.parameters_of(x, condition)
        w, u, b = raw.split([self.width, self.width, 1], -1)
        along = (u * w).sum(-1, keepdim=True)
        room = softplus(along) - 1 - along
        return w, u + room * w / w.square().sum(-1, keepdim=True).clamp_min(1e-12), b
