"""ResNet: blocks of convolutions that each learn a change of what comes in, so that very deep networks train.

    pre-activation    h + W₂ ∗ φ(N(W₁ ∗ φ(N(h))))          the sum passes through untouched
    post-activation   φ(Ph + N(W₂ ∗ φ(N(W₁ ∗ h))))         as residual networks were first written

N is the norm; P is the identity, or a convolution with kernel 1 where channels or sizes change.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from ..core.shapes import without_numbers
from ..core.spec import is_integer, require
from ..data.rows import Inputs
from .base import Network, Shape, refuse_absurd, refuse_large
from .conv_net import (
    assembled,
    check_images,
    require_choices,
    started,
    tiny_images,
    weights_of,
)
from .layers.activation import activation
from .layers.conv import ChannelNorm, Conv, channel_columns, image_shape, shape_after
from .layers.dropout import Dropout
from .layers.fused import Fused
from .layers.resample import PositionMean
from .mlp import MLP

__all__ = ["ConvResidual", "ResNet"]


class ConvResidual(nn.Module):
    """φ(Ph + f(h)): the branch f beside a shortcut P; φ is the identity in pre-activation blocks.

    P is the identity where channels agree and the stride is 1, a learned convolution with kernel 1 otherwise.

    >>> block = ConvResidual(Conv(3, 8, 3, stride=2), 3, 8, stride=2)
    >>> block(torch.zeros(1, 3, 9, 9)).shape, block.skip
    (torch.Size([1, 8, 5, 5]), Conv(3, 8, kernel=1, stride=2))
    """

    def __init__(
        self,
        branch: nn.Module,
        in_channels: int,
        out_channels: int,
        *,
        dims: int = 2,
        stride: int = 1,
        after: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.branch = branch
        same = in_channels == out_channels and stride == 1
        self.skip = nn.Identity() if same else Conv(in_channels, out_channels, 1, dims=dims, stride=stride, bias=False)
        self.after = nn.Identity() if after is None else after

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.skip(x) + self.branch(x))


class ResNet(Network):
    """`blocks` residual blocks for each number of `channels`; from one to the next, sizes halve by stride 2.

    A block has two convolutions and a shortcut. `preactivation` puts norm and activation before each convolution
    rather than after it. What is left is averaged over positions, and η is linear in it. Rows are images
    (channels, height, width), series (channels, length) or d numbers in one channel. `padding` is "zero", "circular" or
    "reflect"; `norm` is "batch", "layer", "group" or None. `dropout` acts between a block's convolutions. The last
    convolution of each branch starts smaller the more blocks there are, so that signals keep their size.

    >>> net = ResNet((8, 16), blocks=1).build((3, 32, 32), 10)
    >>> net(torch.zeros(2, 3, 32, 32)).shape, net.features(torch.zeros(2, 3, 32, 32)).shape
    (torch.Size([2, 10]), torch.Size([2, 16, 16, 16]))
    """

    channels: tuple[int, ...] = (16, 32, 64)
    blocks: int = 2
    preactivation: bool = True
    norm: Literal["batch", "layer", "group"] | None = "batch"
    kernel: int = 3
    padding: Literal["zero", "circular", "reflect"] = "zero"
    activation: str = "relu"
    dropout: float = 0.0
    init: str = "he"

    @classmethod
    def example(cls) -> Self:
        return cls(channels=(2,), blocks=1, norm=None, activation="tanh")

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        return tiny_images(rows, generator)

    def validate(self) -> None:
        require_choices(self, ("zero", "circular", "reflect"))
        require(is_integer(self.blocks), self, "blocks", "an integer, 1 or more")
        require(isinstance(self.preactivation, bool), self, "preactivation", "True or False")

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        return ((1, *in_shape) if len(in_shape) == 1 else in_shape), 0

    @property
    def any_size(self) -> bool:
        return True

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        return channel_columns(in_shape)

    def check(self, x: Inputs) -> None:
        check_images(self, x)

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        shape = image_shape(in_shape, "ResNet")
        refuse_large(self, max(shape[0], *self.channels) * math.prod(side + self.kernel for side in shape[1:]))
        with without_numbers():
            draft = self._features(shape)
        refuse_absurd(self, weights_of(draft))
        shape_after(draft, shape, repr(self))
        head = MLP(()).build((self.channels[-1],), out_features)
        return assembled(in_shape, features=self._features(shape), pool=PositionMean(), head=head)

    def body(self, in_shape: Shape) -> nn.Module:
        return self.build(in_shape, 1).features  # type: ignore[return-value]

    def _features(self, shape: tuple[int, ...]) -> nn.Sequential:
        """The convolutional part: a first convolution, the blocks, and what pre-activation leaves for the end."""
        dims, width = len(shape) - 1, self.channels[0]
        layers: list[nn.Module] = [started(self, shape[0], width, dims=dims)]
        if not self.preactivation:
            layers += self._after(width)
        for stage, channels in enumerate(self.channels):
            for block in range(self.blocks):
                stride = 2 if stage and not block else 1
                layers.append(self._block(width, channels, dims, stride))
                width = channels
        return nn.Sequential(*layers, *(self._after(width) if self.preactivation else []))

    def _block(self, width: int, channels: int, dims: int, stride: int) -> ConvResidual:
        first = started(self, width, channels, dims=dims, stride=stride)
        last = started(self, channels, channels, dims=dims)
        last.weight.data.mul_((self.blocks * len(self.channels)) ** -0.5)  # variances of all branches add up to one's
        dropout = [Dropout(self.dropout)] if self.dropout else []
        if self.preactivation:
            branch = Fused(*self._after(width), first, *self._after(channels), *dropout, last)
            return ConvResidual(branch, width, channels, dims=dims, stride=stride)
        norm = [] if self.norm is None else [ChannelNorm(self.norm, channels)]
        branch = Fused(first, *self._after(channels), *dropout, last, *norm)
        after = activation(self.activation)
        return ConvResidual(branch, width, channels, dims=dims, stride=stride, after=after)

    def _after(self, channels: int) -> list[nn.Module]:
        norm = [] if self.norm is None else [ChannelNorm(self.norm, channels)]
        return [*norm, activation(self.activation)]
