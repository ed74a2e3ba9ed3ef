"""Receptive fields: which part of an image a unit of a convolutional network can see, by sums and by gradients.

    r₀ = j₀ = 1, o₀ = 0,      rₗ = rₗ₋₁ + d(k − 1)·jₗ₋₁,      jₗ = s·jₗ₋₁,      oₗ = oₗ₋₁ − p·jₗ₋₁

After layer l (kernel k, stride s, dilation d, p positions padded in front) a unit sees r positions along an axis; units
side by side see fields j apart, and the first one starts at o. Here the sums are done backwards, from a unit to what it
reads, which also holds for shortcuts (they see the union of both ways) and for up-sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.random import isolated
from ..networks import Network, as_network
from ..networks.layers import ACTIVATIONS
from ..networks.layers.conv import ChannelNorm, Conv
from ..networks.layers.resample import (
    Downsample,
    PositionMean,
    TransposedConv,
    Unpool,
    Upsample,
)
from ..networks.res_net import ConvResidual
from ..networks.u_net import Level, Padded, PositionsFirst

__all__ = ["ENDS", "Field", "in_order", "reach", "receptive_field", "receptive_gradient", "receptive_span"]

HALF = Fraction(1, 2)
ENDS = (PositionMean, PositionsFirst, nn.Flatten, nn.Linear, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)
"""Layers that see the whole image, or move its axes: the convolutional part ends before them."""


class Field(NamedTuple):
    """What a unit sees after a layer: `size` positions along each axis, `jump` apart, the first from `start` on."""

    layer: str
    size: tuple[int, ...]
    jump: tuple[int | Fraction, ...]
    start: tuple[int, ...]


def receptive_field(network: Network | nn.Module, in_shape: Sequence[int]) -> tuple[Field, ...]:
    """The field after each layer of the convolutional part, the last of which feeds the pooling or the answer.

    `start` is negative where the first unit sees padding. Units of a U-Net see fields of different sizes, depending on
    where they lie in the blocks of its lowest level; `size` is the largest.

    >>> from likely.networks import ConvNet
    >>> for layer, size, jump, start in receptive_field(ConvNet(), (1, 28, 28)):
    ...     print(f"{layer:10} {size} {jump} {start}")
    Conv       (3, 3) (1, 1) (-1, -1)
    Downsample (4, 4) (2, 2) (-1, -1)
    ReLU       (4, 4) (2, 2) (-1, -1)
    Conv       (8, 8) (2, 2) (-3, -3)
    Downsample (10, 10) (4, 4) (-3, -3)
    ReLU       (10, 10) (4, 4) (-3, -3)
    """
    layers = _convolutional(network, in_shape)
    axes = range(max(1, len(in_shape) - 1))
    return tuple(_field(layers[: i + 1], axes) for i in range(len(layers)))


def receptive_span(
    network: Network | nn.Module, in_shape: Sequence[int], position: Sequence[int] | None = None, layer: int = -1
) -> tuple[slice, ...]:
    """The part of the image that the unit at a position sees (the middle one if None), after a layer.

    What lies in the padding is left out; circular padding is not followed to the other side.

    >>> from likely.networks import ConvNet
    >>> receptive_span(ConvNet(), (1, 28, 28))
    (slice(9, 19, None), slice(9, 19, None))
    """
    layers = _upto(_convolutional(network, in_shape), layer)
    sizes = tuple(in_shape[1:]) or tuple(in_shape)
    where = _position(_run(layers, torch.zeros(2, *in_shape).to(_first(layers))), position)
    spans = [reach(nn.Sequential(*layers), place, place, axis) for axis, place in enumerate(where)]
    return tuple(slice(max(0, low), min(high + 1, size)) for (low, high), size in zip(spans, sizes, strict=True))


def receptive_gradient(
    network: Network | nn.Module,
    in_shape: Sequence[int],
    position: Sequence[int] | None = None,
    layer: int = -1,
    rows: int = 64,
) -> Tensor:
    """How much the unit at a position changes with each pixel: the mean of |∂unit/∂x| over images of noise.

    Where it is 0 the unit sees nothing; where it is large, it looks: the middle counts more than the edge. A spec is
    built with weights drawn at random, always the same. A maximum passes on a gradient from one position only, so a few
    dozen `rows` are needed to see the whole field.

    >>> from likely.networks import ConvNet
    >>> seen = receptive_gradient(ConvNet(), (1, 28, 28)).nonzero()
    >>> seen.amin(0).tolist(), seen.amax(0).tolist()
    ([9, 9], [18, 18])
    """
    layers = _upto(_convolutional(network, in_shape), layer)
    like = _first(layers)
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(rows, *in_shape, generator=noise, dtype=like.dtype).to(like.device).requires_grad_()
    out = _run(layers, x)
    place: Any = (..., *_position(out, position))
    unit = out[place]
    weights = torch.randn(unit.shape, generator=noise, dtype=like.dtype).to(like.device)  # channels should not cancel
    (gradient,) = torch.autograd.grad((weights * unit).sum(), x)
    return gradient.abs().mean((0, 1) if len(in_shape) > 1 else 0)


@singledispatch
def reach(module: nn.Module, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    """The first and last input along an axis that outputs `low` … `high` of a module read, padding included.

    Kinds of modules that are not known can be registered: `@reach.register`.

    >>> reach(Conv(1, 1, 5, stride=2), 0, 1)
    (-2, 4)
    """
    known = "convolutions, down- and up-sampling, norms, activations, residual blocks and U-Nets"
    raise SpecError(f"The field of a {type(module).__name__} is not known; {known} are.")


def _same(module: nn.Module, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    return low, high


for _kind in {type(make()) for make in ACTIVATIONS.values()} | {ChannelNorm, nn.BatchNorm1d, nn.BatchNorm2d}:
    reach.register(_kind, _same)
for _kind in (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Unflatten):
    reach.register(_kind, _same)


@reach.register
def _(module: Conv, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    first = module.stride * low - module.before
    return first, first + module.stride * (high - low) + module.dilation * (module.kernel - 1)


@reach.register(nn.Conv1d)
@reach.register(nn.Conv2d)
@reach.register(nn.MaxPool1d)
@reach.register(nn.MaxPool2d)
@reach.register(nn.AvgPool1d)
@reach.register(nn.AvgPool2d)
def _(module: Any, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    kernel, stride, dilation = (
        _along(getattr(module, name, 1), axis) for name in ("kernel_size", "stride", "dilation")
    )
    span = dilation * (kernel - 1)
    if isinstance(module.padding, str):
        before = span // 2 if module.padding == "same" else 0
    else:
        before = _along(module.padding, axis)
    return stride * low - before, stride * high - before + span


@reach.register
def _(module: Downsample, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    block = 1 if module.how == "stride" else module.factor
    return module.factor * low, module.factor * high + block - 1


@reach.register(Unpool)
@reach.register(TransposedConv)
def _(module: Any, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    return low // module.factor, high // module.factor


@reach.register
def _(module: Upsample, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    if module.how == "nearest":
        return low // module.factor, high // module.factor
    centres = [(place + HALF) / module.factor - HALF for place in (low, high)]
    return math.floor(centres[0]), math.ceil(centres[1])


@reach.register
def _(module: nn.Sequential, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    for layer in reversed(module):
        low, high = reach(layer, low, high, axis)
    return low, high


@reach.register
def _(module: ConvResidual, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    return _union(reach(module.branch, low, high, axis), reach(module.skip, low, high, axis))


@reach.register
def _(module: Level, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    here = reach(module.decode, low, high, axis)
    below = nn.Sequential(Downsample("max"), module.inner, module.up.mix, module.up.up)
    return reach(module.encode, *_union(here, reach(below, *here, axis)), axis)


@reach.register
def _(module: Padded, low: int, high: int, axis: int = 0) -> tuple[int, int]:
    return reach(module.inner, low, high, axis)


def _union(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), max(one[1], other[1])


def _along(value: int | Sequence[int], axis: int) -> int:
    return value if isinstance(value, int) else value[axis]


def _field(layers: list[nn.Module], axes: range) -> Field:
    chain = nn.Sequential(*layers)
    period = math.prod(m.factor for m in chain.modules() if isinstance(m, Upsample | Unpool | TransposedConv))
    spans = [[reach(chain, place, place, axis) for place in range(period + 1)] for axis in axes]
    sizes = tuple(max(high - low + 1 for low, high in along) for along in spans)
    jumps = tuple(Fraction(along[-1][0] - along[0][0], period) for along in spans)
    whole = tuple(int(jump) if jump.denominator == 1 else jump for jump in jumps)
    last = layers[-1].inner if isinstance(layers[-1], Padded) else layers[-1]
    return Field(type(last).__name__, sizes, whole, tuple(along[0][0] for along in spans))


def _convolutional(network: Network | nn.Module, in_shape: Sequence[int]) -> list[nn.Module]:
    """The layers one after the other, up to the end of the convolutional part."""
    if isinstance(network, nn.Module):
        module = network
    else:
        with isolated(0):
            module = as_network(network).build(tuple(in_shape), 1)
    convolutional: list[nn.Module] = []
    for layer in in_order(module):
        if isinstance(layer, ENDS):
            break
        convolutional.append(layer)
    if not convolutional:
        raise SpecError(f"{type(module).__name__} does not start with a convolution, so its units see the whole row.")
    return convolutional


def in_order(module: nn.Module) -> list[nn.Module]:
    """The layers of a module, those of sequences within it too, in the order in which they are run."""
    if not isinstance(module, nn.Sequential):
        return [module]
    return [leaf for layer in module for leaf in in_order(layer)]


def _upto(layers: list[nn.Module], layer: int) -> list[nn.Module]:
    if not -len(layers) <= layer < len(layers):
        raise SpecError(f"layer={layer}: there are {len(layers)} layers, counted from 0.")
    return layers[: layer % len(layers) + 1]


def _first(layers: list[nn.Module]) -> Tensor:
    """The first parameter, whose type and device x must have."""
    return next((p for layer in layers for p in layer.parameters()), torch.empty(0))


def _run(layers: list[nn.Module], x: Tensor) -> Tensor:
    """As `eval` would, with each layer's mode put back."""
    chain = nn.Sequential(*layers)
    modes = [(module, module.training) for module in chain.modules()]
    chain.eval()
    try:
        return chain(x)
    finally:
        for module, training in modes:
            module.training = training


def _position(out: Tensor, position: Sequence[int] | None) -> tuple[int, ...]:
    sizes = out.shape[2:]
    if position is None:
        return tuple(size // 2 for size in sizes)
    if len(position) != len(sizes) or not all(0 <= p < size for p, size in zip(position, sizes, strict=True)):
        raise SpecError(f"position={tuple(position)} must lie within {tuple(sizes)}, the positions after this layer.")
    return tuple(position)
