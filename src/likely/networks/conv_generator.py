"""ConvGenerator: an image from a few numbers, by transposed convolutions that double its size (DCGAN's generator).

h₀ = φ(W z + b) as small images,   hₗ = φ(up(hₗ₋₁)),   η = up(h_L), cut to the size
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, Self

from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.spec import is_among, is_integer, require
from .base import Network, Shape, refuse_absurd, refuse_large
from .conv_net import CHANNEL_NORMS
from .layers.activation import ACTIVATIONS, activation, gain
from .layers.conv import ChannelNorm
from .layers.resample import TransposedConv

__all__ = ["ConvGenerator"]


class ConvGenerator(Network):
    """From a vector to the pixels of images of `size` (height, width), flat: out_features / pixels are its channels.

    A dense layer makes images with the first of `channels`, 2^L times smaller for L numbers of channels; each
    `TransposedConv` with a kernel of `kernel` doubles them. `norm` is "batch", "layer", "group" or None. A size that
    cannot be halved so often is cut from a larger one.

    >>> import torch
    >>> net = ConvGenerator((28, 28), channels=(16, 8)).build((4,), 28 * 28)
    >>> net(torch.zeros(5, 4)).shape
    torch.Size([5, 784])
    """

    size: tuple[int, int] = (28, 28)
    channels: tuple[int, ...] = (64, 32)
    kernel: int = 4
    activation: str = "relu"
    norm: Literal["batch", "layer", "group"] | None = "batch"

    @classmethod
    def example(cls) -> Self:
        return cls((1, 1), channels=(2,), activation="tanh", norm=None)

    def validate(self) -> None:
        pair = isinstance(self.size, tuple) and len(self.size) == 2 and all(is_integer(side) for side in self.size)
        require(pair, self, "size", "the height and the width of images, such as (28, 28)")
        whole = isinstance(self.channels, tuple) and self.channels and all(is_integer(own) for own in self.channels)
        require(bool(whole), self, "channels", "a tuple of positive integers, such as (64, 32)")
        even = is_integer(self.kernel, 2) and self.kernel % 2 == 0
        require(even, self, "kernel", "an even integer, 2 or more")
        require(is_among(self.activation, ACTIVATIONS), self, "activation", f"one of {', '.join(ACTIVATIONS)}")
        norms = self.norm is None or self.norm in CHANNEL_NORMS
        require(norms, self, "norm", f"None or one of {', '.join(CHANNEL_NORMS)}")

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        pixels = math.prod(self.size)
        if len(in_shape) != 1 or out_features % pixels:
            raise SpecError(
                f"{self!r} makes images of {pixels} pixels from a vector; found rows of shape {in_shape} and "
                f"{out_features} outputs, which are not a multiple of them."
            )
        small = tuple(-(-side // 2 ** len(self.channels)) for side in self.size)
        widths = (*self.channels, out_features // pixels)
        refuse_large(self, max(widths) * 4 ** len(self.channels) * math.prod(small))
        inputs, first = in_shape[0], self.channels[0] * math.prod(small)
        pairs = list(pairwise(widths))
        refuse_absurd(self, inputs * first + sum(one * two for one, two in pairs) * self.kernel**2)
        dense = nn.Linear(inputs, first)
        nn.init.normal_(dense.weight, std=gain(self.activation) * inputs**-0.5)
        layers: list[nn.Module] = [dense, nn.Unflatten(1, (self.channels[0], *small)), *self._after(self.channels[0])]
        for one, two in pairs[:-1]:
            up = TransposedConv(one, two, kernel=self.kernel)
            up.weight.data.mul_(gain(self.activation))
            layers += [up, *self._after(two)]
        last = TransposedConv(*pairs[-1], kernel=self.kernel)
        return nn.Sequential(*layers, last, Cut(self.size))

    def _after(self, channels: int) -> list[nn.Module]:
        norm = [] if self.norm is None else [ChannelNorm(self.norm, channels)]
        return [*norm, activation(self.activation)]


class Cut(nn.Module):
    """The first rows and columns of images (n, channels, height, width), flat.

    >>> import torch
    >>> Cut((3, 2))(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 6])
    """

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return x[..., : self.size[0], : self.size[1]].flatten(-3)
