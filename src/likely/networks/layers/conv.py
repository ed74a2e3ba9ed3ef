"""Convolution over one or two axes: the same small linear map at every position.

    y[o][p] = b[o] + Σᵢ Σⱼ w[o, i][j] · x[i][s·p + d·j − l]        s stride, d dilation, l positions padded in front

This is cross-correlation, which the field calls convolution; the two differ by a kernel turned round, and kernels are
learned. x is (n, channels, length) or (n, channels, height, width).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from ...core.shapes import without_numbers
from .init import lecun
from .memory_order import OrderedGradient
from .norm import BatchNorm, norm

__all__ = [
    "PADDINGS",
    "ChannelNorm",
    "Conv",
    "image_shape",
    "output_size",
    "parameter_count",
    "room_before",
    "shape_after",
]

PADDINGS = ("zero", "valid", "circular", "reflect")

LARGEST_SEARCHED = 2**20
"""Sizes up to this are tried, by halving, to say what the smallest image is."""

Padding = Literal["zero", "valid", "circular", "reflect"]


def output_size(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Positions that come out: ⌊(n + 2p − d(k − 1) − 1)/s⌋ + 1, with p positions padded at either end.

    >>> output_size(32, kernel=5, padding=2), output_size(32, kernel=5), output_size(28, kernel=2, stride=2)
    (32, 28, 14)
    """
    whole = all(type(value) is int for value in (size, kernel, stride, padding, dilation))
    if not whole or min(size, kernel, stride, dilation) < 1 or padding < 0:
        given = f"size={size!r}, kernel={kernel!r}, stride={stride!r}, padding={padding!r}, dilation={dilation!r}"
        raise SpecError(f"Sizes are integers, 1 or more (padding 0 or more); found {given}.")
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if room < 0:
        raise SpecError(
            f"size={size}: a kernel of {kernel} with dilation={dilation} and padding={padding} needs "
            f"{size - room} positions or more."
        )
    return room // stride + 1


def parameter_count(in_channels: int, out_channels: int, kernel: int | Sequence[int], *, bias: bool = True) -> int:
    """Numbers that a convolution learns: out·(in·Πk + 1), whatever the size of the image. An int is a square kernel.

    >>> parameter_count(3, 10, 5)
    760
    """
    window = kernel**2 if isinstance(kernel, int) else math.prod(kernel)
    return out_channels * (in_channels * window + bias)


def room_before(kernel: int, dilation: int = 1) -> int:
    """Positions padded in front so that stride 1 keeps the size: ⌊d(k − 1)/2⌋. An even kernel has one more behind.

    >>> room_before(3), room_before(4), room_before(3, dilation=2)
    (1, 1, 2)
    """
    return dilation * (kernel - 1) // 2


class Conv(nn.Module):
    """A convolution with `out_channels` kernels of `kernel` positions along each of `dims` axes (1 or 2).

    `padding` says what lies beyond the edge: 0 ("zero"), the other end ("circular"), the mirror image ("reflect"), or
    that the kernel stays inside ("valid"). All but "valid" give ⌈size/stride⌉ positions. `dilation` is the distance
    between neighbours under the kernel, `stride` that between outputs. Kernel 1 mixes channels at each position.

    >>> Conv(3, 10, 5)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10, 32, 32])
    >>> Conv(1, 2, 3, dims=1, padding="valid")(torch.zeros(1, 1, 9)).shape
    torch.Size([1, 2, 7])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        dims: int = 2,
        stride: int = 1,
        dilation: int = 1,
        padding: Padding = "zero",
        bias: bool = True,
    ) -> None:
        super().__init__()
        if dims not in (1, 2):
            raise SpecError(f"dims={dims!r} must be 1 (series) or 2 (images).")
        if padding not in PADDINGS:
            raise SpecError(f"padding={padding!r} must be one of {', '.join(PADDINGS)}.")
        for name, value in (("kernel", kernel), ("stride", stride), ("dilation", dilation)):
            if type(value) is not int or value < 1:
                raise SpecError(f"{name}={value!r} must be an integer, 1 or more.")
        self.kernel, self.dims, self.stride, self.dilation, self.padding = kernel, dims, stride, dilation, padding
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, *[kernel] * dims))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """LeCun's weights, and biases uniform on ±1/√inputs."""
        lecun(self.weight)
        if self.bias is not None:
            bound = self.weight[0].numel() ** -0.5
            nn.init.uniform_(self.bias, -bound, bound)

    @property
    def before(self) -> int:
        """Positions padded in front of each axis."""
        return 0 if self.padding == "valid" else room_before(self.kernel, self.dilation)

    def forward(self, x: Tensor) -> Tensor:
        before, inside = self.before, 0
        behind = 0 if self.padding == "valid" else self.dilation * (self.kernel - 1) - before
        if self.padding == "zero" and before == behind:
            inside = before  # the convolution itself knows zeros
        elif behind:
            mode = "constant" if self.padding == "zero" else self.padding
            x = functional.pad(x, [before, behind] * self.dims, mode=mode)
        if self.dims == 1:
            return functional.conv1d(x, self.weight, self.bias, self.stride, inside, self.dilation)
        if _may_reorder(self.weight):
            return functional.conv2d(x, _channels_last(self.weight), self.bias, self.stride, inside, self.dilation)
        x = functional.conv2d(x.contiguous(), self.weight, self.bias, self.stride, inside, self.dilation)
        return OrderedGradient.apply(x, False)

    def extra_repr(self) -> str:
        """The choices that differ from a plain convolution."""
        out_channels, in_channels = self.weight.shape[:2]
        plain = {"dims": 2, "stride": 1, "dilation": 1, "padding": "zero"}
        chosen = [f", {name}={getattr(self, name)!r}" for name, usual in plain.items() if getattr(self, name) != usual]
        return f"{in_channels}, {out_channels}, kernel={self.kernel}{''.join(chosen)}"


class ChannelNorm(nn.Module):
    """Normalises (n, channels, *positions): "batch" each channel over rows and positions, "layer" over channels.

    "group" is over positions and the channels of a group, for each row by itself: where in an image something is large
    can still be told. Groups are 8, or fewer of 4 channels.

    >>> x = torch.randn(4, 2, 5, 5)
    >>> ChannelNorm("batch", 2)(x).mean((0, 2, 3)).abs().max() < 1e-6, ChannelNorm("layer", 2)(x).shape == x.shape
    (tensor(True), True)
    """

    def __init__(self, name: Literal["batch", "layer", "group"], channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups_of(channels), channels) if name == "group" else norm(name, channels)

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.norm, nn.GroupNorm):
            return self.norm(x)
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)

    def rectified(self, x: Tensor) -> Tensor:
        """What of the output is positive, max(0, ·), as one operation where the norm has it."""
        if isinstance(self.norm, BatchNorm):
            return self.norm.rectified(x.movedim(1, -1)).movedim(-1, 1)
        return self(x).relu()


def groups_of(channels: int) -> int:
    """Groups that channels are normalised in.

    >>> [groups_of(channels) for channels in (1, 6, 12, 32, 96)]
    [1, 1, 2, 8, 8]
    """
    return max(count for count in (1, 2, 4, 8) if count == 1 or (channels % count == 0 and channels >= 4 * count))


def image_shape(in_shape: Sequence[int], owner: str) -> tuple[int, ...]:
    """(channels, height, width) or (channels, length) of a row; a row of d numbers is one channel of length d.

    >>> image_shape((1, 28, 28), "ConvNet"), image_shape((100,), "ConvNet")
    ((1, 28, 28), (1, 100))
    """
    shape = (1, *in_shape) if len(in_shape) == 1 else tuple(in_shape)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise SpecError(
            f"{owner} takes images (channels, height, width), series (channels, length) or single numbers in a row; "
            f"found rows of shape {tuple(in_shape)}."
        )
    if len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) > 3 * shape[2]:
        first = (shape[2], *shape[:2])
        raise SpecError(
            f"{owner} takes images with channels first, and rows of shape {shape} have them last; move the axis: "
            f"np.moveaxis(X, -1, 1) has rows of shape {first}."
        )
    return shape


def channel_columns(in_shape: Sequence[int]) -> tuple[int, ...]:
    """One number for each channel, to be broadcast against rows of this shape; single numbers are one channel.

    >>> channel_columns((3, 28, 28)), channel_columns((100,))
    ((3, 1, 1), (1,))
    """
    return (1,) if len(in_shape) == 1 else (in_shape[0], *(1 for _ in in_shape[1:]))


@torch.no_grad()
def shape_after(module: nn.Module, shape: Sequence[int], owner: str) -> tuple[int, ...]:
    """What a module on the "meta" device makes of a row of this shape; a row too small is refused, with what would do.

    >>> with without_numbers():
    ...     draft = Conv(3, 10, 5, padding="valid")
    >>> shape_after(draft, (3, 32, 32), "Conv")
    (10, 28, 28)
    """
    module.eval()  # masks of dropout change no shape, and there is nothing to draw them from
    out_shape = _attempt(module, shape)
    if out_shape is not None:
        return out_shape
    # A size that will do is one above which all will do, so that twenty questions find the smallest.
    fits = partial(_square_fits, module, shape)
    smallest = bisect_left(range(LARGEST_SEARCHED), True, lo=1, key=fits)
    wanted = f"{smallest:,} × {smallest:,} pixels" if len(shape) == 3 else f"{smallest:,} positions"
    hint = "" if shape[0] <= shape[-1] else " If channels come last, move them first: np.moveaxis(X, -1, 1)."
    raise SpecError(f"{owner} needs {wanted} or more; found rows of shape {tuple(shape)}.{hint}")


def _square_fits(module: nn.Module, shape: Sequence[int], size: int) -> bool:
    return _attempt(module, (shape[0], *[size] * (len(shape) - 1))) is not None


def _attempt(module: nn.Module, shape: Sequence[int]) -> tuple[int, ...] | None:
    try:
        with without_numbers():
            return tuple(module(torch.empty(2, *shape)).shape[1:])
    except RuntimeError:  # a kernel, a block or a mirror image larger than what is left
        return None


def _may_reorder(weight: Tensor) -> bool:
    """Whether torch trains with these kernels in another order of memory without writing beyond its own.

    Kernels of one channel or of one position lie in memory the same way in both orders. Unless there is a multiple of
    16 of them, their gradient in the other order is written past its end (torch 2.13 on a CPU).
    """
    ambiguous = weight.shape[1] == 1 or weight[0, 0].numel() == 1
    return not ambiguous or weight.shape[0] % 16 == 0


def _channels_last(weight: Tensor) -> Tensor:
    """The same kernels with channels next to each other in memory: the output then has that order too.

    Training is about 1.8 × as fast on a CPU, and the parameter itself stays contiguous, as optimisers want it.
    """
    sizes = (*weight.shape[2:], weight.shape[1])
    return weight.movedim(1, -1).flatten(1).unflatten(1, sizes).movedim(-1, 1)
