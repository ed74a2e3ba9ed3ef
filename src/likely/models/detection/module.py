"""The module of a detector: an image → η of every cell of every grid.

    f = body(z(x)),   f_s = f brought to stride s,   η_s = offset_s + unit · (V_s ∗ φ(norm(W_s ∗ f_s)))

The body is that of any network that gives a map of features. Coarser grids see blocks of the map through a learned
kernel, finer ones its values repeated. Offsets are η without x: the log-odds that a cell has an object, how often each
class is met, where edges are; so that training begins at the base rate, and not with an object in every cell.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from ...core.shapes import without_numbers
from ...networks import Network
from ...networks.layers.conv import ChannelNorm, Conv
from ...networks.layers.init import initialise
from ...networks.layers.resample import Upsample
from ...networks.layers.standardise import Standardise

__all__ = ["CellNetwork", "Layout", "layout_of"]

FIRST = 0.1
"""What η begins with beyond its offset, in its units."""


class Layout:
    """How a body and the grids fit: the padding that both need, and the map that the body gives."""

    def __init__(self, multiple: int, channels: int, stride: int) -> None:
        self.multiple, self.channels, self.stride = multiple, channels, stride


def layout_of(network: Network, in_shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
    """Images are padded to a multiple of every stride, and of twice, four times … as much where the body needs it."""
    smallest = math.lcm(*strides, int(getattr(network, "patch", 1)))
    for multiple in (smallest, 2 * smallest, 4 * smallest, 8 * smallest):
        sides = tuple(-(-side // multiple) * multiple for side in in_shape[1:])
        shape = (in_shape[0], *sides)
        try:
            with without_numbers():
                out = network.body(shape).eval()(torch.zeros(1, *shape, device="meta"))
        except (RuntimeError, NotImplementedError):
            out = network.body(shape).eval()(torch.zeros(1, *shape))
        if not isinstance(out, Tensor) or out.ndim != 4:
            given = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise SpecError(f"network must give a map of features (n, channels, height, width) here; it gave {given}.")
        ratios = [side / own for side, own in zip(sides, out.shape[2:], strict=True)]
        own = int(ratios[0])
        if ratios[0] == ratios[1] == own and all(stride % own == 0 or own % stride == 0 for stride in strides):
            return Layout(multiple, out.shape[1], own)
    raise SpecError(
        f"{network!r} gives a map of {tuple(out.shape[2:])} for images of {sides}, which does not fit cells of "
        f"strides={strides}; one side of a map's cell must be a multiple of the other."
    )


class CellNetwork(nn.Module):
    """η of all cells: (n, c, h, w) → (n, count, size).

    >>> from likely.networks import ResNet
    >>> layout = layout_of(ResNet((4, 8), 1), (3, 20, 30), (4, 8))
    >>> body = ResNet((4, 8), 1).body((3, 24, 32))
    >>> CellNetwork(body, layout, (4, 8), torch.zeros(2, 5), torch.ones(5))(torch.zeros(7, 3, 20, 30)).shape
    torch.Size([7, 60, 5])
    """

    offset: Tensor
    unit: Tensor

    def __init__(
        self,
        body: nn.Module,
        layout: Layout,
        strides: tuple[int, ...],
        offset: Tensor,
        unit: Tensor,
        inputs: Standardise | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.network, self.multiple = inputs, body, layout.multiple
        channels, before = layout.channels, layout.stride
        ways: list[nn.Module] = []
        for stride in strides:
            ways.append(_way(channels, stride, before))
            before = max(stride, before)
        self.ways = nn.ModuleList(ways)
        self.coarser = [stride > layout.stride for stride in strides]
        self.heads = nn.ModuleList(_head(channels, offset.shape[-1]) for _ in strides)
        self.register_buffer("offset", offset)
        self.register_buffer("unit", unit)

    def forward(self, x: Tensor) -> Tensor:
        if self.inputs is not None:
            x = self.inputs(x)  # type: ignore[assignment]
        missing = [-side % self.multiple for side in x.shape[2:]]
        if any(missing):
            x = functional.pad(x, [0, missing[1], 0, missing[0]])
        whole = features = self.network(x)
        etas = []
        for index, (way, head) in enumerate(zip(self.ways, self.heads, strict=True)):
            own = way(features if self.coarser[index] else whole)
            features = own if self.coarser[index] else features
            etas.append(head(own).flatten(2).transpose(1, 2) * self.unit + self.offset[index])
        return torch.cat(etas, 1)


def _way(channels: int, stride: int, before: int) -> nn.Module:
    """From a map of stride `before` to one of this stride."""
    if stride > before:
        ratio = stride // before
        return nn.Sequential(Conv(channels, channels, ratio, stride=ratio, padding="valid"), nn.ReLU())
    return nn.Identity() if stride == before else Upsample("nearest", before // stride)


def _head(channels: int, size: int) -> nn.Sequential:
    last = Conv(channels, size, 1)
    last.weight.data.mul_(FIRST)
    if last.bias is not None:
        nn.init.zeros_(last.bias)
    first = Conv(channels, channels, 3)
    initialise(first.weight.data, "he", "relu")
    return nn.Sequential(first, ChannelNorm("group", channels), nn.ReLU(), last)
