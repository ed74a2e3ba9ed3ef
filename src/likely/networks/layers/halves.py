"""What compiled loops over numbers in bfloat16 ask of tensors: torch's own take as long on them as in float32."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

__all__ = ["loops_take"]

FEW = 4
"""Threads up to which one pass by a loop is faster than torch's, which all of them share."""


def loops_take(x: Tensor, *others: Tensor) -> bool:
    """Whether loops may compute on x: in bfloat16 on a processor, outside of transformations of functions.

    >>> loops_take(torch.zeros(3, dtype=torch.bfloat16)), loops_take(torch.zeros(3))
    (True, False)
    """
    known = x.dtype == torch.bfloat16 and x.device.type == "cpu" and torch.get_num_threads() <= FEW
    if not known or not x.numel() or torch._C._are_functorch_transforms_active():
        return False
    return all(forward_ad.unpack_dual(part).tangent is None for part in (x, *others))
