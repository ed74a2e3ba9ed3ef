"""Spline: a monotone rational-quadratic spline, the identity beyond its ends.

    z = y₀ + h (s θ² + d₀ θ(1 − θ)) / (s + (d₀ + d₁ − 2s) θ(1 − θ)),      θ = (x − x₀)/w,  s = h/w

within a bin [x₀, x₀ + w] → [y₀, y₀ + h] whose ends have the gradients d₀ and d₁ (Durkan et al., 2019). At ± bound the
spline meets the identity with gradient 1, so that any number has a finite image and one inverse, a root of a quadratic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad, softmax, softplus

from ....core.spec import is_integer, require
from .base import _Elementwise

__all__ = ["Spline"]

LEAST_WIDTH = 1e-3
"""The least width and height of a bin, as a fraction of what bins would have if they were alike."""
LEAST_GRADIENT = 1e-3
"""The least gradient at a knot."""
AT_ONE = math.log(math.expm1(1 - LEAST_GRADIENT))
"""The raw number that stands for a gradient of 1: raw numbers 0 are the identity."""


class Spline(_Elementwise):
    """`bins` pieces on [−bound, bound], in units of the data.

    >>> spline = Spline(bins=4)
    >>> x = torch.tensor([[-100.0, 0.3, 1e30]])
    >>> spline.forward(x, torch.zeros(1, 3 * spline.size))[0]
    tensor([[-1.0000e+02,  3.0000e-01,  1.0000e+30]])
    """

    bins: int = 8
    bound: float = 5.0

    def validate(self) -> None:
        """Two bins or more, in a finite interval."""
        require(is_integer(self.bins, 2) and self.bins <= 512, self, "bins", "an integer from 2 to 512")
        require(0 < self.bound < 1e6, self, "bound", "above 0 and below 1e6")

    @property
    def size(self) -> int:
        return 3 * self.bins - 1

    def columns(self, count: int) -> Sequence[int]:
        return [column for column in range(count) for _ in range(self.size)]

    def forward(self, x: Tensor, raw: Tensor) -> tuple[Tensor, Tensor]:
        inside = x.clamp(-self.bound, self.bound)
        x0, x1, y0, y1, d0, d1 = self._bin(inside, raw, along=0)
        width, height = x1 - x0, y1 - y0
        s = height / width
        theta = (inside - x0) / width
        rest = 1 - theta
        both = theta * rest
        below = s + (d0 + d1 - 2 * s) * both
        ratio = s / below
        z = y0 + height * (s * theta.square() + d0 * both) / below
        gradient = (d1 * theta.square() + 2 * s * both + d0 * rest.square()) * ratio.square()
        return z + (x - inside), gradient.log()

    def inverse(self, z: Tensor, raw: Tensor) -> Tensor:
        inside = z.clamp(-self.bound, self.bound)
        x0, x1, y0, y1, d0, d1 = self._bin(inside, raw, along=1)
        width, height, above = x1 - x0, y1 - y0, inside - y0
        s = height / width
        bend = above * (d0 + d1 - 2 * s)
        a, b, c = height * (s - d0) + bend, height * d0 - bend, -s * above
        root = (b.square() - 4 * a * c).clamp_min(0).sqrt()
        theta = 2 * c / (-b - root)  # the form that does not lose digits where a is small
        return x0 + theta * width + (z - inside)

    def _bin(self, place: Tensor, raw: Tensor, along: int) -> tuple[Tensor, ...]:
        """x₀, x₁, y₀, y₁, d₀, d₁ of the bin that a number lies in: a place on the x axis (0) or on the y axis (1)."""
        own = raw.unflatten(-1, (-1, self.size))  # (…, k, size)
        sizes = softmax(own[..., : 2 * self.bins].unflatten(-1, (2, self.bins)), -1)
        least = LEAST_WIDTH / self.bins
        steps = sizes[..., :-1].cumsum(-1) * (1 - LEAST_WIDTH) + self._offsets(least, own)
        inner = (2 * self.bound) * steps - self.bound  # (…, k, 2, bins − 1): knots on both axes
        index = (place.unsqueeze(-1) >= inner[..., along, :]).sum(-1, keepdim=True)
        knots = pad(pad(inner, (1, 0), value=-self.bound), (0, 1), value=self.bound)
        gradients = pad(softplus(own[..., 2 * self.bins :] + AT_ONE) + LEAST_GRADIENT, (1, 1), value=1.0)
        table = torch.cat([knots.flatten(-2), gradients], -1)  # (…, k, 3 (bins + 1))
        count = self.bins + 1
        where = torch.cat([index + shift for shift in (0, 1, count, count + 1, 2 * count, 2 * count + 1)], -1)
        return table.expand(*place.shape, -1).gather(-1, where).unbind(-1)

    def _offsets(self, least: float, like: Tensor) -> Tensor:
        """What the least widths add up to at each inner knot."""
        return torch.arange(1, self.bins, dtype=like.dtype, device=like.device) * least
