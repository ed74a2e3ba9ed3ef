"""Whether gradients are followed: predictions need none, unless someone asks how they change with their rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

__all__ = ["following"]


def following(x: Any) -> AbstractContextManager[Any]:
    """Inside, gradients are followed if the rows x ask for one, where they were before.

    >>> with following(torch.zeros(1)):
    ...     torch.is_grad_enabled()
    False
    >>> with following(torch.zeros(1, requires_grad=True)):
    ...     torch.is_grad_enabled()
    True
    """
    return torch.set_grad_enabled(torch.is_grad_enabled() and isinstance(x, Tensor) and x.requires_grad)
