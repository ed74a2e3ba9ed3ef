"""Images in flows: channels on the last axis, 2 × 2 pixels folded into channels, and networks with an answer per pixel.

Folding makes a checkerboard of pixels a matter of channels: of the four pixels of a block, two on a diagonal stay and
two move. Mixing channels is a 1 × 1 convolution.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ....core.errors import SpecError
from ....networks.base import Network, as_network
from ....networks.conv_net import ConvNet
from .bijection import Bijection

__all__ = ["ChannelsLast", "Inverted", "Squeeze", "checkerboard"]


class ChannelsLast(Bijection):
    """(n, channels, height, width) → (n, height, width, channels).

    >>> ChannelsLast()(torch.zeros(2, 3, 4, 5))[0].shape
    torch.Size([2, 4, 5, 3])
    """

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return x.movedim(1, -1), x.new_zeros(())

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        return z.movedim(-1, 1)


class Squeeze(Bijection):
    """(n, height, width, channels) → (n, height/2, width/2, 4 channels): each block of 2 × 2 pixels becomes one.

    >>> Squeeze()(torch.arange(4.0).reshape(1, 2, 2, 1))[0].tolist()
    [[[[0.0, 1.0, 2.0, 3.0]]]]
    """

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        n, height, width, channels = x.shape
        blocks = x.reshape(n, height // 2, 2, width // 2, 2, channels).transpose(2, 3)
        return blocks.reshape(n, height // 2, width // 2, 4 * channels), x.new_zeros(())

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        n, height, width, channels = z.shape
        blocks = z.reshape(n, height, width, 2, 2, channels // 4).transpose(2, 3)
        return blocks.reshape(n, 2 * height, 2 * width, channels // 4)


class Inverted(Bijection):
    """A map that keeps volumes, the other way round.

    >>> x = torch.arange(8.0).reshape(1, 2, 4, 1)
    >>> torch.equal(Inverted(Squeeze())(Squeeze()(x)[0])[0], x)
    True
    """

    def __init__(self, inner: Bijection) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.inner.inverse(x, condition), x.new_zeros(())

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.inner(z, condition)[0]


def checkerboard(channels: int) -> tuple[int, ...]:
    """The order of squeezed channels that puts one colour of the checkerboard before the other.

    >>> checkerboard(1)
    (0, 3, 1, 2)
    """
    return tuple(block * channels + own for block in (0, 3, 1, 2) for own in range(channels))


class _PerPixel(Network):
    """A network of images as one of pixels: rows come with channels last, and each pixel has its answer.

    A `ConvNet` is taken for its convolutions, without down-sampling; any other network must answer per pixel itself.
    """

    inner: Any
    size: tuple[int, int]

    def build(
        self, in_shape: tuple[int, ...], out_features: int, condition: tuple[int, ...] | None = None
    ) -> nn.Module:
        """The module for pixels of so many channels."""
        shape, spec = (*in_shape, *self.size), as_network(self.inner)
        if isinstance(spec, ConvNet):
            spec = _Convolutions(spec)
        told = () if condition is None else (condition,)
        module = _Last(spec.build(shape, out_features, *told))  # type: ignore[call-arg]
        with torch.no_grad():
            given = () if condition is None else (torch.zeros(1, *condition),)
            answer = tuple(module(torch.zeros(1, *self.size, *in_shape), *given).shape)
        if answer != (1, *self.size, out_features):
            raise SpecError(f"network={spec!r} has no answer per pixel, which a flow of images needs; UNet has.")
        return module


class _Convolutions(Network):
    """The convolutions of a `ConvNet` at full size, and a 1 × 1 convolution to the answer of each pixel."""

    spec: Any

    def features_at(self, in_shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        return in_shape, 0

    def build(
        self, in_shape: tuple[int, ...], out_features: int, condition: tuple[int, ...] | None = None
    ) -> nn.Module:
        """Convolutions that keep the size."""
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        features = self.spec.replace(downsample=None, stride=1)._features(in_shape)
        head = nn.Conv2d(self.spec.channels[-1], out_features, 1)
        assert head.bias is not None
        nn.init.zeros_(head.bias)
        return nn.Sequential(features, head, _PixelsFirst())


class _PixelsFirst(nn.Module):
    """Channels last, as answers have them."""

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(1, -1)


class _Last(nn.Module):
    """A network of images with channels last."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, *condition: Tensor) -> Tensor:
        return self.network(x.movedim(-1, 1), *condition)
