"""How what is learned lies in memory: rows one after the other, from an address that is a multiple of 64.

A library of linear algebra rounds by what it is given: another order of strides is another path through it, and an
address between two registers' widths another place where its loops begin. So what a fit leaves and what a file gives
back are laid out alike, and a loaded model gives the same bits as the one that was saved.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .quiet import quiet

__all__ = ["ALIGNMENT", "laid_out", "laid_out_array"]

ALIGNMENT = 64
"""Bytes: the width of a line of the cache, and of the widest registers."""


def laid_out(tensor: Tensor) -> Tensor:
    """The tensor in row-major order at an aligned address; a copy only where it is not that already.

    >>> laid_out(torch.zeros(3, 2).T).stride()
    (3, 1)
    """
    if tensor.stride() == _row_major(tensor.shape) and tensor.data_ptr() % ALIGNMENT == 0:
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)  # torch's own memory is aligned


def laid_out_array(array: np.ndarray) -> np.ndarray:
    """The same for an array of numbers.

    >>> laid_out_array(np.zeros((3, 2), order="F")).strides
    (16, 8)
    """
    with quiet(UserWarning, "The given NumPy array is not writ"):  # torch could write to it; it is only read
        shared = torch.from_numpy(np.asarray(array, order="C"))
    own = laid_out(shared)
    return array if own is shared and array.flags.c_contiguous else own.numpy()


def _row_major(shape: torch.Size) -> tuple[int, ...]:
    """Strides without gaps. `is_contiguous` leaves those of axes of length 1 open, and a matrix product does not."""
    strides = [1]
    for length in reversed(shape[1:]):
        strides.append(strides[-1] * max(length, 1))
    return tuple(reversed(strides)) if shape else ()
