"""The layers of a flow, one after the other, for rows of a shape."""

from __future__ import annotations

import math
from typing import Any, Literal

from ....networks import MLP
from ....networks.base import as_network
from .autoregressive import Autoregression
from .base import Transform, _Elementwise
from .bijection import Bijection, Chain
from .conditioner import conditioner
from .continuous import Continuous, VelocityField
from .coupling import Coupling
from .image import ChannelsLast, Inverted, Squeeze, _PerPixel, checkerboard
from .mixing import LinearMap, Permutation, shuffled
from .planar import Planar, PlanarMap
from .radial import RadialMap

__all__ = ["as_image", "stack"]

Order = Literal["coupling", "autoregressive"]
Mixing = Literal["permutation", "linear"]
Shape = tuple[int, ...]
LEVELS = 2
"""How often images are squeezed, at most."""


def as_image(transform: Transform, shape: Shape, network: Any) -> bool:
    """Whether rows are treated as images, by networks of pixels: an MLP sees them as plain numbers."""
    able = isinstance(transform, _Elementwise | Continuous)
    return len(shape) == 3 and able and not isinstance(as_network(network), MLP)


def stack(
    transform: Transform,
    shape: Shape,
    *,
    order: Order = "coupling",
    layers: int = 5,
    network: Any = None,
    mixing: Mixing = "permutation",
    condition: Shape | None = None,
) -> Bijection:
    """The layers of a transform, for rows (n, d) or images (n, channels, height, width).

    >>> from likely.models.generative.transforms import Spline
    >>> chain = stack(Spline(), (3,), layers=2, network=MLP((8,)))
    >>> [type(layer).__name__ for layer in chain.maps]
    ['Coupling', 'Permutation', 'Coupling']
    """
    spec = MLP((64, 64)) if network is None else network
    if isinstance(transform, Continuous):
        return VelocityField(transform, shape, spec, condition)
    if isinstance(transform, _Elementwise):
        if len(shape) == 3:
            return _image(transform, shape, layers, spec, mixing, condition)
        if order == "autoregressive":
            return _autoregressive(transform, shape[0], layers, spec, mixing, condition)
        return Chain(_couplings(transform, shape[0], layers, spec, mixing, condition))
    width = math.prod(shape)
    size = 2 * width + 1 if isinstance(transform, Planar) else width + 2
    build = PlanarMap if isinstance(transform, Planar) else RadialMap
    return Chain(build(width, _free(spec, size, condition)) for _ in range(layers))


def _couplings(
    transform: _Elementwise, width: int, layers: int, network: Any, mixing: Mixing, condition: Shape | None
) -> list[Bijection]:
    maps: list[Bijection] = []
    kept = width // 2
    for layer in range(layers):
        if layer and (mixing == "linear" or width > 2):
            maps.append(_mixed(width, layer, mixing))
        maps.append(Coupling(transform, width, kept, network, condition))
    return maps


def _autoregressive(
    transform: _Elementwise, width: int, layers: int, network: Any, mixing: Mixing, condition: Shape | None
) -> Chain:
    told = 0 if condition is None else math.prod(condition)
    maps: list[Bijection] = []
    for layer in range(layers):
        if layer and mixing == "linear" and width > 1:
            maps.append(LinearMap(tuple(range(width))))
        order = tuple(range(width))[:: -1 if layer % 2 else 1]
        maps.append(Autoregression(transform, order, network, told))
    return Chain(maps)


def _image(
    transform: _Elementwise, shape: Shape, layers: int, network: Any, mixing: Mixing, condition: Shape | None
) -> Chain:
    """Squeeze, couple, squeeze again where sides allow it: the layers are shared out among the sizes.

    z has the shape of x: each pixel's number is where it was.
    """
    channels, height, width = shape
    levels = sum(height % 2**level == 0 and width % 2**level == 0 for level in range(1, LEVELS + 1))
    maps: list[Bijection] = [ChannelsLast()]
    for level in range(max(1, levels)):
        if levels:
            maps += [Squeeze(), Permutation(checkerboard(channels))]
            channels, height, width = 4 * channels, height // 2, width // 2
        count = layers // max(1, levels) + (level < layers % max(1, levels))
        spec = _PerPixel(network, (height, width))
        maps += _couplings(transform, channels, max(1, count), spec, mixing, condition)
    maps += [Inverted(Squeeze()) for _ in range(levels)]
    return Chain([*maps, Inverted(ChannelsLast())])


def _mixed(width: int, layer: int, mixing: Mixing) -> Bijection:
    return LinearMap(shuffled(width, layer)) if mixing == "linear" else Permutation(shuffled(width, layer))


def _free(network: Any, size: int, condition: Shape | None) -> Any:
    """Parameters that are free, or a network's answer to the condition; small random numbers at the start."""
    module = conditioner(network, (0,), size, condition)
    if condition is None:
        module.values.data.normal_(0.0, 0.3)  # type: ignore[operator]
    return module
