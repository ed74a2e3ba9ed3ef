"""Convolution as a matrix and as a product of spectra: three ways to the same numbers.

convolution        (w ∗ x)[u] = Σₜ w[t] x[u − t]          cross-correlation   (w ⋆ x)[u] = Σₜ w[t] x[u + t]
as a matrix        w ∗ x = T(w) x                         T has the same numbers along each diagonal (Toeplitz)
round a circle     F(w ∗ x) = F(w) · F(x)                 T is circulant, and the Fourier modes are its eigenvectors
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..networks.layers.conv import output_size, parameter_count, room_before

__all__ = ["fourier", "output_size", "parameter_count", "toeplitz"]

PADDINGS = ("valid", "zero", "full", "circular", "reflect")
KINDS = ("convolution", "correlation")

Kind = Literal["convolution", "correlation"]


def toeplitz(
    kernel: Any,
    size: int | Sequence[int],
    *,
    kind: Kind = "convolution",
    padding: Literal["valid", "zero", "full", "circular", "reflect"] = "valid",
    stride: int = 1,
    dilation: int = 1,
) -> Tensor:
    """The matrix T with T @ x.ravel() = (w ∗ x).ravel(), for x of this size: a number, or (height, width).

    `kind="correlation"` does not turn the kernel round, as the layers of networks do not. `padding` is that of
    `layers.Conv` ("zero", "circular" and "reflect" keep the size, with the kernel's middle over each position), or
    "full": every position that the kernel touches.

    >>> toeplitz([1.0, 2.0, 3.0], 3, padding="full")
    tensor([[1., 0., 0.],
            [2., 1., 0.],
            [3., 2., 1.],
            [0., 3., 2.],
            [0., 0., 3.]])
    """
    weight, sizes = _kernel(kernel, kind), (size,) if isinstance(size, int) else tuple(size)
    if weight.ndim != len(sizes):
        raise DataError(f"kernel has {weight.ndim} axes, but size={size!r} has {len(sizes)}.")
    if padding not in PADDINGS:
        raise SpecError(f"padding={padding!r} must be one of {', '.join(PADDINGS)}.")
    reads = [_reads(n, k, padding, stride, dilation).to(weight) for n, k in zip(sizes, weight.shape, strict=True)]
    if weight.ndim == 1:
        return torch.einsum("a,oai->oi", weight, reads[0])
    whole = torch.einsum("ab,oai,pbj->opij", weight, *reads)
    return whole.flatten(2).flatten(0, 1)


def fourier(x: Any, kernel: Any, *, kind: Kind = "convolution", dilation: int = 1) -> Tensor:
    """Circular convolution over all axes of x through its spectrum: F⁻¹(F(w) · F(x)).

    As in `layers.Conv` with circular padding, the kernel's middle lies over each position; of n numbers it takes
    n log n steps, however long the kernel.

    >>> fourier([1.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0]).round().tolist()
    [2.0, 3.0, 0.0, 1.0]
    """
    signal, weight = _tensor(x, "x"), _kernel(kernel, kind)
    if signal.ndim != weight.ndim:
        raise DataError(f"kernel has {weight.ndim} axes, but x has {signal.ndim}.")
    spread = signal.new_zeros(signal.shape)
    places = [
        (room_before(k, dilation) - dilation * torch.arange(k)) % n
        for n, k in zip(signal.shape, weight.shape, strict=True)
    ]
    # a kernel longer than the circle goes round it, and its numbers add up
    spread.index_put_(torch.meshgrid(*places, indexing="ij"), weight.to(signal), accumulate=True)
    return torch.fft.ifftn(torch.fft.fftn(spread) * torch.fft.fftn(signal)).real


def _reads(size: int, kernel: int, padding: str, stride: int, dilation: int) -> Tensor:
    """Which input each output reads through each number of the kernel, along one axis: (outputs, kernel, inputs)."""
    reach = dilation * (kernel - 1)
    before, total = {"valid": (0, 0), "full": (reach, 2 * reach)}.get(padding, (room_before(kernel, dilation), reach))
    outputs = output_size(size + total, kernel, stride=stride, dilation=dilation)
    places = stride * torch.arange(outputs).unsqueeze(1) + dilation * torch.arange(kernel) - before
    if padding == "circular":
        places = places % size
    elif padding == "reflect":
        if reach - before >= size:
            raise SpecError(f"size={size}: a mirror image of {reach - before} positions needs one more than that.")
        places = (size - 1) - ((size - 1) - places.abs()).abs()
    return places.unsqueeze(-1) == torch.arange(size)


def _kernel(kernel: Any, kind: Kind) -> Tensor:
    """The kernel as it lies over x: turned round for convolution."""
    if kind not in KINDS:
        raise SpecError(f"kind={kind!r} must be one of {', '.join(KINDS)}.")
    weight = _tensor(kernel, "kernel")
    return weight.flip(tuple(range(weight.ndim))) if kind == "convolution" else weight


def _tensor(value: Any, name: str) -> Tensor:
    tensor = torch.as_tensor(value)
    if tensor.ndim not in (1, 2) or not tensor.numel():
        raise DataError(f"{name} must have one axis (a series) or two (an image); found shape {tuple(tensor.shape)}.")
    return tensor if tensor.is_floating_point() else tensor.double()
