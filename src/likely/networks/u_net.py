"""UNet: an answer for every pixel, from what is seen near it and from what is seen far around it.

    uₗ(h) = decodeₗ([e, up(uₗ₊₁(down(e)))]),   e = encodeₗ(h),   u_L = encode_L,   η[p] = W u₁(x)[p] + b

Each level works at half the size of the one above it, and hands its result back up, where it meets what was there
before: side by side (U-Net) or as a sum (hourglass).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.shapes import without_numbers
from ..core.spec import require
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
from .layers.resample import (
    UPSAMPLES,
    PositionMean,
    TransposedConv,
    Unpool,
    Upsample,
    max_with_indices,
)

__all__ = ["Level", "Padded", "PositionsFirst", "Raise", "UNet"]


class Raise(nn.Module):
    """From a level to the one above: other channels, and twice the size, by one of the four up-samplings.

    >>> below, indices = max_with_indices(torch.randn(1, 4, 6, 6))
    >>> Raise("unpool", 4, 4)(below, indices, (6, 6)).shape
    torch.Size([1, 4, 6, 6])
    """

    def __init__(
        self,
        how: Literal["nearest", "bilinear", "unpool", "transposed"],
        in_channels: int,
        out_channels: int,
        dims: int = 2,
    ) -> None:
        super().__init__()
        self.mix: nn.Module = nn.Identity()
        self.up: nn.Module
        if how == "transposed":
            self.up = TransposedConv(in_channels, out_channels, dims=dims)
        else:
            self.mix = Conv(in_channels, out_channels, 1, dims=dims)  # before, where there are fewer positions
            self.up = Unpool() if how == "unpool" else Upsample(how)

    def forward(self, x: Tensor, indices: Tensor, size: Sequence[int]) -> Tensor:
        mixed = self.mix(x)
        return self.up(mixed, indices, size) if isinstance(self.up, Unpool) else self.up(mixed)


class Level(nn.Module):
    """decode([e, up(inner(down(e)))]) with e = encode(x): one level of a U-Net; `inner` is the level below.

    >>> inner = Conv(4, 8, 3)
    >>> level = Level(Conv(1, 4, 3), inner, Raise("nearest", 8, 4), Conv(8, 4, 3))
    >>> level(torch.zeros(1, 1, 6, 6)).shape
    torch.Size([1, 4, 6, 6])
    """

    def __init__(
        self, encode: nn.Module, inner: nn.Module, up: Raise, decode: nn.Module, *, concatenate: bool = True
    ) -> None:
        super().__init__()
        self.encode, self.inner, self.up, self.decode = encode, inner, up, decode
        self.concatenate = concatenate

    def forward(self, x: Tensor) -> Tensor:
        seen = self.encode(x)
        below, indices = max_with_indices(seen)
        back = self.up(self.inner(below), indices, seen.shape[2:])
        return self.decode(torch.cat([seen, back], 1) if self.concatenate else seen + back)


class Padded(nn.Module):
    """Runs a module on images padded behind with 0 to a multiple of so many positions, and crops what it gives.

    >>> Padded(nn.AvgPool2d(1), 4)(torch.ones(1, 1, 5, 7)).shape
    torch.Size([1, 1, 5, 7])
    """

    def __init__(self, inner: nn.Module, multiple: int) -> None:
        super().__init__()
        self.inner, self.multiple = inner, multiple

    def forward(self, x: Tensor) -> Tensor:
        sizes = x.shape[2:]
        missing = [-size % self.multiple for size in sizes]
        if not any(missing):
            return self.inner(x)
        out = self.inner(functional.pad(x, [part for more in reversed(missing) for part in (0, more)]))
        return out[(..., *(slice(size) for size in sizes))]


class PositionsFirst(nn.Module):
    """(n, channels, *positions) → (n, *positions, channels).

    >>> PositionsFirst()(torch.zeros(1, 2, 5, 7)).shape
    torch.Size([1, 5, 7, 2])
    """

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(1, -1)


class UNet(Network):
    """A level for each number of `channels`, every one at half the size of the one before.

    A level has two convolutions on the way down and two on the way up, each followed by norm, activation and dropout.
    `upsample` is "nearest", "bilinear", "unpool" (to where the maxima were) or "transposed" (a learned kernel); `skip`
    is "concatenate" (U-Net) or "add" (hourglass). With `output="each"` η is (n, height, width, …), an answer for
    each pixel, so `Classifier(network=UNet()).fit(images, labels)` with labels (n, height, width) segments images;
    "mean" is one answer for each image, their mean. Any size will do: images are padded inside, and η is cropped.
    Series (channels, length) have an answer at each step.

    >>> UNet((4, 8)).build((3, 30, 21), 2)(torch.zeros(5, 3, 30, 21)).shape
    torch.Size([5, 30, 21, 2])
    """

    channels: tuple[int, ...] = (16, 32, 64)
    upsample: Literal["nearest", "bilinear", "unpool", "transposed"] = "nearest"
    skip: Literal["concatenate", "add"] = "concatenate"
    output: Literal["each", "mean"] = "each"
    kernel: int = 3
    padding: Literal["zero", "circular", "reflect"] = "zero"
    activation: str = "relu"
    norm: Literal["batch", "layer"] | None = "batch"
    dropout: float = 0.0
    init: str = "he"

    @classmethod
    def example(cls) -> Self:
        return cls(channels=(1, 2), skip="add", output="mean", norm=None, activation="tanh")

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        return tiny_images(rows, generator)

    def validate(self) -> None:
        require_choices(self, ("zero", "circular", "reflect"))
        require(self.upsample in UPSAMPLES, self, "upsample", f"one of {', '.join(UPSAMPLES)}")
        require(self.skip in ("concatenate", "add"), self, "skip", "concatenate or add")
        require(self.output in ("each", "mean"), self, "output", "each or mean")

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        return ((1, *in_shape) if len(in_shape) == 1 else in_shape), 0

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        return channel_columns(in_shape)

    def check(self, x: Inputs) -> None:
        check_images(self, x)

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        shape = image_shape(in_shape, "UNet")
        sides = [-(-side // self._multiple) * self._multiple + self.kernel for side in shape[1:]]  # padded
        refuse_large(self, max(shape[0], *self.channels) * math.prod(sides))
        with without_numbers():
            draft = self._features(shape)
        refuse_absurd(self, weights_of(draft))
        shape_after(draft, shape, repr(self))
        last = Conv(self.channels[0], out_features, 1, dims=len(shape) - 1)
        if last.bias is not None:
            nn.init.zeros_(last.bias)
        out = PositionMean() if self.output == "mean" else PositionsFirst()
        return assembled(in_shape, features=self._features(shape), head=last, output=out)

    def _features(self, shape: tuple[int, ...]) -> Padded:
        """All levels, from the largest images down."""
        return Padded(self._level(shape[0], self.channels, len(shape) - 1), self._multiple)

    @property
    def _multiple(self) -> int:
        """Sides are padded to a multiple of this, so that every level halves them."""
        return 2 ** (len(self.channels) - 1)

    def _level(self, width: int, channels: tuple[int, ...], dims: int) -> nn.Module:
        own, *below = channels
        encode = self._double(width, own, dims)
        if not below:
            return encode
        inner = self._level(own, tuple(below), dims)
        up = Raise(self.upsample, below[0], own, dims)
        concatenate = self.skip == "concatenate"
        decode = self._double(2 * own if concatenate else own, own, dims)
        return Level(encode, inner, up, decode, concatenate=concatenate)

    def _double(self, width: int, channels: int, dims: int) -> nn.Sequential:
        """Two convolutions, each with what follows it."""
        layers: list[nn.Module] = []
        for before in (width, channels):
            layers.append(started(self, before, channels, dims=dims))
            layers += [] if self.norm is None else [ChannelNorm(self.norm, channels)]
            layers.append(activation(self.activation))
            layers += [Dropout(self.dropout)] if self.dropout else []
        return nn.Sequential(*layers)
