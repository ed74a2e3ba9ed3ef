"""ConvNet: convolutions that see more and more of the image, then an MLP on what they found.

h₀ = x,   hₗ = down(φ(Wₗ ∗ hₗ₋₁ + bₗ)),   η = MLP(pool(h_L))
"""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import lru_cache
from typing import Any, Literal, Self

import torch
from torch import nn

from ..core.errors import DataError, SpecError
from ..core.shapes import without_numbers
from ..core.spec import is_among, is_fraction, is_integer, require
from ..data.rows import Inputs, Rows
from .base import Network, Shape, refuse_absurd, refuse_large
from .layers.activation import ACTIVATIONS, activation
from .layers.conv import (
    PADDINGS,
    ChannelNorm,
    Conv,
    channel_columns,
    image_shape,
    shape_after,
)
from .layers.dropout import Dropout
from .layers.init import INITS, initialise
from .layers.memory_order import Flatten
from .layers.resample import DOWNSAMPLES, Downsample, PositionMean
from .mlp import MLP

__all__ = ["ConvNet"]

CHANNEL_NORMS = ("batch", "layer", "group")
INCREASING = frozenset(
    ["identity", "sigmoid", "tanh", "relu", "leaky_relu", "elu", "selu", "softplus", "softsign", "erf"]
)


class ConvNet(Network):
    """A stage for each number of `channels`: convolution → norm → activation → down-sampling by 2 → dropout.

    Rows are images (channels, height, width), series (channels, length), or d numbers, which are one channel of
    length d. `kernel`, `stride`, `dilation` and `padding` are those of `layers.Conv`; `downsample` is "max", "mean",
    "stride" (every second position) or None. `norm` is "batch" (each channel over rows and positions), "layer" (over
    channels) or None. `pool` says what the MLP with `hidden` layers sees: all that is left ("flatten"), or the mean
    over positions ("mean"), which forgets where: with circular padding and no down-sampling, η does not change when
    the image moves. Weights start as `init` says, for this activation.

    >>> net = ConvNet((8, 16), hidden=()).build((1, 28, 28), 10)
    >>> net(torch.zeros(5, 1, 28, 28)).shape, net.features(torch.zeros(5, 1, 28, 28)).shape
    (torch.Size([5, 10]), torch.Size([5, 16, 7, 7]))
    """

    channels: tuple[int, ...] = (32, 64)
    kernel: int = 3
    stride: int = 1
    padding: Literal["zero", "valid", "circular", "reflect"] = "zero"
    dilation: int = 1
    downsample: Literal["max", "mean", "stride"] | None = "max"
    activation: str = "relu"
    norm: Literal["batch", "layer", "group"] | None = None
    dropout: float = 0.0
    hidden: tuple[int, ...] = (128,)
    pool: Literal["flatten", "mean"] = "flatten"
    init: str = "he"

    @classmethod
    def example(cls) -> Self:
        return cls(channels=(2,), hidden=(), activation="tanh", pool="mean")

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        return tiny_images(rows, generator)

    def validate(self) -> None:
        require_choices(self)
        require(is_integer(self.stride), self, "stride", "an integer, 1 or more")
        require(is_integer(self.dilation), self, "dilation", "an integer, 1 or more")
        down = self.downsample is None or self.downsample in DOWNSAMPLES
        require(down, self, "downsample", f"None or one of {', '.join(DOWNSAMPLES)}")
        whole = isinstance(self.hidden, tuple) and all(is_integer(units) for units in self.hidden)
        require(whole, self, "hidden", "a tuple of positive integers, such as (128,)")
        require(self.pool in ("flatten", "mean"), self, "pool", "flatten or mean")

    def features_at(self, in_shape: Shape) -> tuple[Shape, int]:
        return ((1, *in_shape) if len(in_shape) == 1 else in_shape), 0

    @property
    def any_size(self) -> bool:
        return self.pool == "mean"

    def columns(self, in_shape: tuple[int, ...]) -> tuple[int, ...]:
        return channel_columns(in_shape)

    def check(self, x: Inputs) -> None:
        check_images(self, x)

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        shape = image_shape(in_shape, "ConvNet")
        reach = self.dilation * (self.kernel - 1)  # positions that padding may add
        refuse_large(self, max(shape[0], *self.channels) * math.prod(side + reach for side in shape[1:]))
        with without_numbers():
            draft = self._features(shape)
        refuse_absurd(self, weights_of(draft))
        left = shape_after(draft, shape, repr(self))
        width = left[0] if self.pool == "mean" else math.prod(left)
        norm = "layer" if self.norm == "group" else self.norm  # one group: a row without positions has no others
        head = MLP(self.hidden, self.activation, self.init, self.dropout, norm)
        features = self._features(shape)
        pool = PositionMean() if self.pool == "mean" else Flatten()
        return assembled(in_shape, features=features, pool=pool, head=head.build((width,), out_features))

    def body(self, in_shape: Shape) -> nn.Module:
        return self.build(in_shape, 1).features  # type: ignore[return-value]

    def _features(self, shape: tuple[int, ...]) -> nn.Sequential:
        """The convolutional part: one stage after the other."""
        layers: list[nn.Module] = []
        width = shape[0]
        for channels in self.channels:
            layers += self._stage(width, channels, len(shape) - 1)
            width = channels
        return nn.Sequential(*layers)

    def _stage(self, width: int, channels: int, dims: int) -> list[nn.Module]:
        stride = 2 * self.stride if self.downsample == "stride" else self.stride
        conv = started(self, width, channels, dims=dims, stride=stride, dilation=self.dilation)
        norm = [] if self.norm is None else [ChannelNorm(self.norm, channels)]
        down = [Downsample(self.downsample)] if self.downsample in ("max", "mean") else []
        dropout = [Dropout(self.dropout)] if self.dropout else []
        if self.downsample == "max" and self.activation in INCREASING:
            # max φ(z) = φ(max z): the same numbers with a quarter of the activations
            return [conv, *norm, *down, activation(self.activation), *dropout]
        return [conv, *norm, activation(self.activation), *down, *dropout]


def assembled(in_shape: tuple[int, ...], **parts: nn.Module) -> nn.Sequential:
    """The parts one after the other, by name; rows of plain numbers are first given their one channel."""
    channel = {"channel": nn.Unflatten(1, (1, in_shape[0]))} if len(in_shape) == 1 else {}
    return nn.Sequential(OrderedDict({**channel, **parts}))


def started(spec: Any, width: int, channels: int, **choices: Any) -> Conv:
    """A convolution with the kernel, padding and initial weights that a spec asks for.

    Batch norm has a shift of its own for each channel, and takes away what a bias would add.
    """
    conv = Conv(width, channels, spec.kernel, padding=spec.padding, bias=spec.norm != "batch", **choices)
    initialise(conv.weight.data, spec.init, spec.activation)
    return conv


def tiny_images(rows: int, generator: torch.Generator) -> Any:
    """Images (1, 6, 6) of noise, for examples."""
    return torch.randn(rows, 1, 6, 6, generator=generator).numpy()


def require_choices(spec: Any, paddings: tuple[str, ...] = PADDINGS, norms: tuple[str, ...] = CHANNEL_NORMS) -> None:
    """Check what all networks of convolutions let a person choose."""
    whole = isinstance(spec.channels, tuple) and spec.channels and all(is_integer(c) for c in spec.channels)
    require(bool(whole), spec, "channels", "a tuple of positive integers, such as (32, 64)")
    require(is_integer(spec.kernel), spec, "kernel", "an integer, 1 or more")
    require(spec.padding in paddings, spec, "padding", f"one of {', '.join(paddings)}")
    require(is_among(spec.activation, ACTIVATIONS), spec, "activation", f"one of {', '.join(ACTIVATIONS)}")
    require(is_among(spec.init, INITS), spec, "init", f"one of {', '.join(INITS)}")
    require(is_fraction(spec.dropout), spec, "dropout", "a probability, 0 or more and below 1")
    known = spec.norm is None or is_among(spec.norm, norms)
    require(known, spec, "norm", f"None or one of {', '.join(norms)}")


def check_images(network: Network, x: Inputs) -> None:
    """Refuse rows that the network cannot be built for, before anyone takes them for plain numbers instead."""
    name = type(network).__name__
    if isinstance(x, Rows):
        raise DataError(f"X has {x.kind}s; {name} takes images or series that all have one shape.")
    refused = _refusal(network, tuple(x.shape[1:]))
    if refused:
        raise DataError(f"X: {refused}")


@lru_cache(maxsize=64)
def _refusal(network: Network, shape: tuple[int, ...]) -> str:
    """Why the network cannot be built for rows of this shape; nothing if it can. Asked at every prediction."""
    try:
        with without_numbers():
            network.build(shape, 1)
    except SpecError as error:
        return str(error)
    return ""


def weights_of(draft: nn.Module) -> int:
    """Numbers that a module would learn."""
    return sum(parameter.numel() for parameter in draft.parameters())
