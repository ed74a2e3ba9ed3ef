"""Fewer positions, and more: down-sampling and up-sampling of (n, channels, length) or (n, channels, height, width).

    down   max       the largest of each block of f positions (f × f in images)
           mean      their mean
           stride    the first of them: a convolution followed by it is the convolution with stride f
    up     nearest   every value f times (f × f)                      f^dims · (mean down-sampling)ᵀ
           bilinear  between the centres of values, by their distance
           unpool    every value where the maximum was, 0 elsewhere    (max down-sampling at that x)ᵀ
           transposed  every value times a learned kernel              (convolution with stride f)ᵀ

Blocks that are not full are left out, so n positions become ⌊n/f⌋ (⌈n/f⌉ for stride).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import DataError, SpecError
from .max_pool import max_pool
from .memory_order import ordered

__all__ = [
    "DOWNSAMPLES",
    "UPSAMPLES",
    "Downsample",
    "PositionMean",
    "TransposedConv",
    "Unpool",
    "Upsample",
    "max_with_indices",
]

DOWNSAMPLES = ("max", "mean", "stride")
UPSAMPLES = ("nearest", "bilinear", "unpool", "transposed")


class Downsample(nn.Module):
    """One value for each block of `factor` positions along every axis: "max", "mean" or "stride".

    >>> x = torch.tensor([[[1.0, 4.0, 2.0, 0.0]]])
    >>> [Downsample(how)(x).flatten().tolist() for how in DOWNSAMPLES]
    [[4.0, 2.0], [2.5, 1.0], [1.0, 2.0]]
    """

    def __init__(self, how: Literal["max", "mean", "stride"] = "max", factor: int = 2) -> None:
        super().__init__()
        if how not in DOWNSAMPLES:
            raise SpecError(f"how={how!r} must be one of {', '.join(DOWNSAMPLES)}.")
        self.how, self.factor = how, _checked(factor)

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "stride":
            return x[..., :: self.factor] if x.ndim == 3 else x[..., :: self.factor, :: self.factor]
        if self.how == "max":
            return functional.max_pool1d(x, self.factor) if x.ndim == 3 else max_pool(x, self.factor)
        return functional.avg_pool1d(x, self.factor) if x.ndim == 3 else functional.avg_pool2d(x, self.factor)

    def extra_repr(self) -> str:
        """How, and by how much."""
        return f"{self.how!r}, factor={self.factor}"


def max_with_indices(x: Tensor, factor: int = 2) -> tuple[Tensor, Tensor]:
    """Max down-sampling, and where in its image each maximum was, which is what `Unpool` needs.

    >>> max_with_indices(torch.tensor([[[1.0, 4.0, 2.0, 0.0]]]))
    (tensor([[[4., 2.]]]), tensor([[[1, 2]]]))
    """
    pool = functional.max_pool1d if x.ndim == 3 else functional.max_pool2d
    return pool(x, factor, return_indices=True)


class Unpool(nn.Module):
    """Values put back where the maxima were in an image of this `size`, with 0 elsewhere.

    Blocks that were not full had no maximum: after an odd width the last column is 0.

    >>> Unpool()(torch.tensor([[[4.0, 2.0]]]), torch.tensor([[[1, 2]]]), size=(5,))
    tensor([[[0., 4., 2., 0., 0.]]])
    """

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = _checked(factor)

    def forward(self, x: Tensor, indices: Tensor, size: Sequence[int]) -> Tensor:
        if [positions // self.factor for positions in size] != list(x.shape[2:]):
            raise DataError(
                f"size={tuple(size)} does not become {tuple(x.shape[2:])} by blocks of {self.factor}; "
                "give the size of the image whose maxima these are."
            )
        empty = x.new_zeros(*x.shape[:2], math.prod(size))
        # torch's own unpooling does the same, but not for the stacked members of an ensemble
        return empty.scatter(2, indices.flatten(2), x.flatten(2)).unflatten(2, tuple(size))


class Upsample(nn.Module):
    """`factor` times as many positions along every axis, by "nearest" or "bilinear" (linear in series) values.

    >>> x = torch.tensor([[[0.0, 4.0]]])
    >>> Upsample("nearest")(x).flatten().tolist(), Upsample("bilinear")(x).flatten().tolist()
    ([0.0, 0.0, 4.0, 4.0], [0.0, 1.0, 3.0, 4.0])
    """

    def __init__(self, how: Literal["nearest", "bilinear"] = "nearest", factor: int = 2) -> None:
        super().__init__()
        if how not in ("nearest", "bilinear"):
            raise SpecError(f"how={how!r} must be nearest or bilinear; `Unpool` and `TransposedConv` are the others.")
        self.how, self.factor = how, _checked(factor)

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "nearest":
            return functional.interpolate(x, scale_factor=self.factor, mode="nearest")
        mode = "linear" if x.ndim == 3 else "bilinear"
        return functional.interpolate(x, scale_factor=self.factor, mode=mode, align_corners=False)

    def extra_repr(self) -> str:
        """How, and by how much."""
        return f"{self.how!r}, factor={self.factor}"


class TransposedConv(nn.Module):
    """Every value times a kernel along each of `dims` axes, `factor` positions apart: `factor` times as many of them.

        y[o][f·p + j − l] = b[o] + Σᵢ w[i, o][j] · x[i][p],   j = 0 … k − 1,   l = (k − f)/2

    Kernels of f positions lie side by side; longer ones (`kernel`, by an even number) overlap, and what they add beyond
    the edge is cut off. It is the adjoint of a convolution with this kernel and stride and l positions of padding. The
    weight is (in, out, kernel).

    >>> x = torch.zeros(1, 4, 3, 5)
    >>> TransposedConv(4, 2)(x).shape, TransposedConv(4, 2, kernel=4)(x).shape
    (torch.Size([1, 2, 6, 10]), torch.Size([1, 2, 6, 10]))
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        factor: int = 2,
        *,
        kernel: int | None = None,
        dims: int = 2,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if dims not in (1, 2):
            raise SpecError(f"dims={dims!r} must be 1 (series) or 2 (images).")
        self.factor, self.dims = _checked(factor), dims
        size = factor if kernel is None else kernel
        if type(size) is not int or size < factor or (size - factor) % 2:
            raise SpecError(f"kernel={kernel!r} must be None, or longer than factor={factor} by an even number.")
        self.overlap = (size - factor) // 2
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels, *[size] * dims))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """LeCun's weights, N(0, 1/inputs): (k/f)^dims values of each input channel enter an output. Biases on ±1/√."""
        inputs = self.weight[:, 0].numel() / self.factor**self.dims
        nn.init.normal_(self.weight, std=inputs**-0.5)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -(inputs**-0.5), inputs**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        transposed = functional.conv_transpose1d if self.dims == 1 else functional.conv_transpose2d
        return transposed(x, self.weight, self.bias, stride=self.factor, padding=self.overlap)

    def extra_repr(self) -> str:
        """Channels in and out, and by how much."""
        in_channels, out_channels, size = self.weight.shape[:3]
        kernel = "" if size == self.factor else f", kernel={size}"
        return f"{in_channels}, {out_channels}, factor={self.factor}{kernel}, dims={self.dims}"


class PositionMean(nn.Module):
    """The mean over all positions: (n, channels, *positions) → (n, channels). It forgets where things are.

    >>> PositionMean()(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3])
    """

    def forward(self, x: Tensor) -> Tensor:
        return ordered(x).mean(tuple(range(2, x.ndim)))


def _checked(factor: int) -> int:
    if type(factor) is not int or factor < 1:
        raise SpecError(f"factor={factor!r} must be an integer, 1 or more.")
    return factor
