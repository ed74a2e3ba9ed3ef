"""UNet: an answer for every pixel, from what is seen near it and from what is seen far around it.

    uₗ(h) = decodeₗ([e, up(uₗ₊₁(down(e)))]),   e = encodeₗ(h),   u_L = encode_L,   η[p] = W u₁(x)[p] + b

Each level works at half the size of the one above it, and hands its result back up, where it meets what was there
before: side by side (U-Net) or as a sum (hourglass). With a condition of numbers c, as of noisy images at a time, what
encodes and decodes is residual, and c scales and shifts what every level sees:

    encode(h, c) = s ∗ h + v ∗ φ( (1 + A g) ∘ norm(w ∗ φ(norm h)) + B g ),      g = silu(W₂ silu(W₁ c + b₁) + b₂ + W₃ c)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.shapes import without_numbers
from ..core.spec import is_integer, require
from ..data.rows import Inputs
from .base import Network, Shape, refuse_absurd, refuse_large
from .condition import condition_width
from .conv_net import (
    CHANNEL_NORMS,
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
from .layers.init import initialise
from .layers.resample import (
    UPSAMPLES,
    Downsample,
    PositionMean,
    TransposedConv,
    Unpool,
    Upsample,
    max_with_indices,
)

__all__ = ["ConditionedBlock", "ConditionedUNet", "Level", "Padded", "Patched", "PositionsFirst", "Raise", "UNet"]

HEARD = 128
"""Numbers in which every level hears of a condition."""
FIRST = 0.1
"""What a residual block begins with, times what it would be without a way around it."""


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

    Down is to the maxima of blocks, or to their means, which keep what is below 0 and tell a signal from noise.

    >>> inner = Conv(4, 8, 3)
    >>> level = Level(Conv(1, 4, 3), inner, Raise("nearest", 8, 4), Conv(8, 4, 3))
    >>> level(torch.zeros(1, 1, 6, 6)).shape
    torch.Size([1, 4, 6, 6])
    """

    def __init__(
        self,
        encode: nn.Module,
        inner: nn.Module,
        up: Raise,
        decode: nn.Module,
        *,
        concatenate: bool = True,
        means: bool = False,
    ) -> None:
        super().__init__()
        self.encode, self.inner, self.up, self.decode = encode, inner, up, decode
        self.concatenate = concatenate
        self.down = Downsample("mean") if means else None

    def forward(self, x: Tensor, *heard: Tensor) -> Tensor:
        seen = self.encode(x, *heard)
        below, indices = max_with_indices(seen) if self.down is None else (self.down(seen), x.new_empty(0))
        back = self.up(self.inner(below, *heard), indices, seen.shape[2:])
        return self.decode(torch.cat([seen, back], 1) if self.concatenate else seen + back, *heard)


class ConditionedBlock(nn.Module):
    """around(x) + second( (1 + A g) ∘ first(x) + B g ): two convolutions that hear g between them, and a way around.

    >>> block = ConditionedBlock(Conv(1, 4, 3), Conv(4, 4, 3), Conv(1, 4, 1), heard=2, channels=4)
    >>> block(torch.zeros(3, 1, 5, 5), torch.zeros(3, 2)).shape
    torch.Size([3, 4, 5, 5])
    """

    def __init__(self, first: nn.Module, second: nn.Module, around: nn.Module, heard: int, channels: int) -> None:
        super().__init__()
        self.first, self.second, self.around = first, second, around
        self.hear = nn.Linear(heard, 2 * channels)

    def forward(self, x: Tensor, heard: Tensor) -> Tensor:
        scale, shift = self.hear(heard).unflatten(1, (-1, *(1 for _ in x.shape[2:]))).chunk(2, 1)
        return self.around(x) + self.second(torch.addcmul(shift, self.first(x), 1 + scale))


class Patched(nn.Module):
    """Runs a module on blocks of `patch` positions along each axis, and turns its answer into positions again.

    `last` is what its answer goes through before.

    >>> Patched(1, 4, 2, nn.Identity())(torch.zeros(3, 1, 6, 8)).shape
    torch.Size([3, 4, 6, 8])
    """

    def __init__(
        self, width: int, channels: int, patch: int, inner: nn.Module, dims: int = 2, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.down = Conv(width, channels, patch, stride=patch, padding="valid", dims=dims)
        self.inner, self.last = inner, nn.Identity() if last is None else last
        self.up = nn.Identity() if patch == 1 else TransposedConv(channels, channels, patch, dims=dims)

    def forward(self, x: Tensor, *heard: Tensor) -> Tensor:
        return self.up(self.last(self.inner(self.down(x), *heard)))


class Padded(nn.Module):
    """Runs a module on images padded behind with 0 to a multiple of so many positions, and crops what it gives.

    >>> Padded(nn.AvgPool2d(1), 4)(torch.ones(1, 1, 5, 7)).shape
    torch.Size([1, 1, 5, 7])
    """

    def __init__(self, inner: nn.Module, multiple: int) -> None:
        super().__init__()
        self.inner, self.multiple = inner, multiple

    def forward(self, x: Tensor, *heard: Tensor) -> Tensor:
        sizes = x.shape[2:]
        missing = [-size % self.multiple for size in sizes]
        if not any(missing):
            return self.inner(x, *heard)
        out = self.inner(functional.pad(x, [part for more in reversed(missing) for part in (0, more)]), *heard)
        return out[(..., *(slice(size) for size in sizes))]


class PositionsFirst(nn.Module):
    """(n, channels, *positions) → (n, *positions, channels).

    >>> PositionsFirst()(torch.zeros(1, 2, 5, 7)).shape
    torch.Size([1, 5, 7, 2])
    """

    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(1, -1)


class ConditionedUNet(nn.Module):
    """A U-Net of x and a condition of numbers, which every level hears of.

    >>> UNet((4, 8)).build((1, 8, 8), 1, condition=(3,))(torch.zeros(5, 1, 8, 8), torch.zeros(5, 3)).shape
    torch.Size([5, 8, 8, 1])
    """

    def __init__(self, condition: int, network: nn.Sequential) -> None:
        super().__init__()
        self.ear = nn.Sequential(nn.Linear(condition, HEARD), nn.SiLU(), nn.Linear(HEARD, HEARD))
        self.around = nn.Linear(condition, HEARD, bias=False)
        for layer in (*self.ear, self.around):
            if isinstance(layer, nn.Linear):
                initialise(layer.weight.data, "he", "silu")  # what is heard stays as loud as it was told
        self.network = network

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        told = condition.flatten(1).to(x.dtype)
        heard = functional.silu(self.ear(told) + self.around(told))
        for name, part in self.network.named_children():
            x = part(x, heard) if name == "features" else part(x)
        return x


class UNet(Network):
    """A level for each number of `channels`, every one at half the size of the one before.

    A level has two convolutions on the way down and two on the way up, each followed by norm, activation and dropout;
    with a condition of numbers they are residual, norm and activation come first, and `norm="auto"` is "group", else
    "batch", whose averages would mix images of much noise with those of little.
    `upsample` is "nearest", "bilinear", "unpool" (to where the maxima were) or "transposed" (a learned kernel); `skip`
    is "concatenate" (U-Net) or "add" (hourglass). With `output="each"` η is (n, height, width, …), an answer for
    each pixel, so `Classifier(network=UNet()).fit(images, labels)` with labels (n, height, width) segments images;
    "mean" is one answer for each image, their mean. Any size will do: images are padded inside, and η is cropped.
    Series (channels, length) have an answer at each step. With `patch` > 1 the first level works on blocks of so many
    pixels along each axis: several times as quick, where single pixels tell little.

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
    norm: Literal["auto", "batch", "layer", "group"] | None = "auto"
    dropout: float = 0.0
    init: str = "he"
    patch: int = 1

    @classmethod
    def example(cls) -> Self:
        return cls(channels=(1, 2), skip="add", output="mean", norm=None, activation="tanh")

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        return tiny_images(rows, generator)

    def validate(self) -> None:
        require_choices(self, ("zero", "circular", "reflect"), ("auto", *CHANNEL_NORMS))
        require(self.upsample in UPSAMPLES, self, "upsample", f"one of {', '.join(UPSAMPLES)}")
        require(self.skip in ("concatenate", "add"), self, "skip", "concatenate or add")
        require(self.output in ("each", "mean"), self, "output", "each or mean")
        require(is_integer(self.patch), self, "patch", "an integer, 1 or more")

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
        if condition is None:
            return self._with_norm("batch")._network(in_shape, out_features)
        shape, axis = self.features_at(in_shape)
        size = math.prod(condition)
        if size and condition_width(condition, shape, axis) < size:  # an image beside x
            return self.conditioned(in_shape, out_features, condition)
        return ConditionedUNet(size, self._with_norm("group")._network(in_shape, out_features, HEARD))

    def body(self, in_shape: Shape) -> nn.Module:
        """All levels; where the first one works on blocks of `patch` pixels, a feature for each block."""
        own, dims = self.channels[0], len(in_shape) - 1
        self.build(in_shape, 1)  # which refuses what does not fit
        levels = self._with_norm("batch")._level(in_shape[0] if self.patch == 1 else own, self.channels, dims, 0)
        inner = Padded(levels, self.multiple // self.patch)
        if self.patch == 1:
            return inner
        return nn.Sequential(Conv(in_shape[0], own, self.patch, stride=self.patch, padding="valid", dims=dims), inner)

    def _with_norm(self, norm: Literal["batch", "group"]) -> UNet:
        """With this one, if a person left it open."""
        return self.replace(norm=norm) if self.norm == "auto" else self

    def _network(self, in_shape: Shape, out_features: int, heard: int = 0) -> nn.Sequential:
        """Levels, head and output; with `heard` numbers that the levels are told."""
        shape = image_shape(in_shape, "UNet")
        sides = [-(-side // self.multiple) * self.multiple + self.kernel for side in shape[1:]]  # padded
        refuse_large(self, max(shape[0], *self.channels) * math.prod(sides))
        with without_numbers():
            draft = self._features(shape, 0)
        refuse_absurd(self, weights_of(draft))
        shape_after(draft, shape, repr(self))
        last = Conv(self.channels[0], out_features, 1, dims=len(shape) - 1)
        if last.bias is not None:
            nn.init.zeros_(last.bias)
        out = PositionMean() if self.output == "mean" else PositionsFirst()
        return assembled(in_shape, features=self._features(shape, heard), head=last, output=out)

    def _features(self, shape: tuple[int, ...], heard: int) -> Padded:
        """All levels, from the largest images down."""
        dims, own = len(shape) - 1, self.channels[0]
        if self.patch == 1 and not heard:
            return Padded(self._level(shape[0], self.channels, dims, heard), self.multiple)
        levels = self._level(own, self.channels, dims, heard)
        last = nn.Sequential(*self._ready(own)) if heard else None
        return Padded(Patched(shape[0], own, self.patch, levels, dims, last), self.multiple)

    @property
    def multiple(self) -> int:
        """Sides are padded to a multiple of this, so that every level halves them."""
        return self.patch * 2 ** (len(self.channels) - 1)

    def _level(self, width: int, channels: tuple[int, ...], dims: int, heard: int) -> nn.Module:
        own, *below = channels
        encode = self._double(width, own, dims, heard)
        if not below:
            return encode
        inner = self._level(own, tuple(below), dims, heard)
        up = Raise(self.upsample, below[0], own, dims)
        concatenate = self.skip == "concatenate"
        decode = self._double(2 * own if concatenate else own, own, dims, heard)
        means = heard > 0 and self.upsample != "unpool"
        return Level(encode, inner, up, decode, concatenate=concatenate, means=means)

    def _double(self, width: int, channels: int, dims: int, heard: int) -> nn.Module:
        """Two convolutions, each with what follows it; or, where a condition is heard, with what comes before it."""
        convolutions = [started(self, before, channels, dims=dims) for before in (width, channels)]
        if not heard:
            return nn.Sequential(*(layer for conv in convolutions for layer in (conv, *self._ready(channels))))
        norm, *rest = self._ready(channels) if self.norm else (nn.Identity(), *self._ready(channels))
        convolutions[1].weight.data.mul_(FIRST)
        around = nn.Identity() if width == channels else Conv(width, channels, 1, dims=dims)
        first = nn.Sequential(*self._ready(width), convolutions[0], norm)
        return ConditionedBlock(first, nn.Sequential(*rest, convolutions[1]), around, heard, channels)

    def _ready(self, channels: int) -> list[nn.Module]:
        """Norm, activation and dropout."""
        norms = [] if self.norm is None else [ChannelNorm(self.norm, channels)]  # type: ignore[arg-type]
        return [*norms, activation(self.activation), *([Dropout(self.dropout)] if self.dropout else [])]
