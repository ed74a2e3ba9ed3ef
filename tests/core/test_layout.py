"""What is learned lies in memory as a file gives it back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.layout import ALIGNMENT, laid_out, laid_out_array


def unaligned(tensor):
    """The same numbers at an address that no register's width divides."""
    return torch.empty(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape).copy_(tensor)


NUMBERS = torch.arange(12.0)
ELSEWHERE = {
    "transposed": NUMBERS.view(3, 4).mT,
    "every other": NUMBERS[::2],
    "one axis of length 1, strides of another matrix": NUMBERS[:3].as_strided((3, 1), (1, 3)),
    "unaligned": unaligned(NUMBERS.view(3, 4)),
    "the same row again and again": NUMBERS[:4].expand(3, 4),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_numbers_are_copied_to_aligned_rows(name):
    tensor = ELSEWHERE[name]
    copy = laid_out(tensor)
    assert torch.equal(copy, tensor)
    assert copy.data_ptr() % ALIGNMENT == 0
    assert copy.stride() == torch.empty(tensor.shape).stride()
    array = laid_out_array(tensor.numpy())
    np.testing.assert_array_equal(array, tensor.numpy())
    assert array.ctypes.data % ALIGNMENT == 0
    assert array.flags.c_contiguous


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (3, 1), (2, 3, 4), (0,), (2, 0, 3)])
def test_what_lies_there_already_is_not_copied(shape):
    tensor = torch.zeros(shape)
    assert laid_out(tensor) is tensor
    array = laid_out_array(np.zeros(shape))
    assert array.shape == shape
    if array.size:
        assert laid_out_array(array) is array


def test_arrays_that_cannot_be_written_to_are_read():
    array = np.zeros((2, 3), order="F")
    array.flags.writeable = False
    assert laid_out_array(array).strides == (24, 8)
