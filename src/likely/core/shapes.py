"""Shapes without numbers: a module built and called on torch's "meta" device, where nothing has memory.

Torch finds many shapes there by Python code of its compiler, whose import takes longer than many fits. The operations
that networks are made of are written out here: what acts on every number by itself, normalisation, and `cat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .random import Redirected

__all__ = ["without_numbers"]


@contextmanager
def without_numbers() -> Iterator[None]:
    """Inside, new tensors have a shape and no memory, and nothing is drawn for them.

    >>> with without_numbers():
    ...     torch.nn.Linear(10**6, 10**6)(torch.empty(2, 10**6)).shape
    torch.Size([2, 1000000])
    """
    with torch.device("meta"), _Shapes():
        yield


class _Shapes(Redirected):
    """Operations of known shape are not asked for it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in KNOWN:
            return KNOWN[name](*args, **(kwargs or {}))
        tensors = [value for value in args if isinstance(value, Tensor)]
        if not tensors or torch.Tag.pointwise not in func.tags or any(value.device.type != "meta" for value in tensors):
            return super().__torch_dispatch__(func, types, args, kwargs)
        if name.endswith("_"):
            return args[0]
        dtype = torch.bool if name in ANSWERS else torch.result_type(tensors[0], tensors[-1])
        return _blank(torch.broadcast_shapes(*(value.shape for value in tensors)), dtype)


def _blank(shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.ops.aten.empty.memory_format(shape, dtype=dtype, device="meta")


def _normed(x: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The same in other units, and statistics that nobody asks for."""
    return _blank(x.shape, x.dtype), _blank((0,)), _blank((0,))


def _joined(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    shape = list(tensors[0].shape)
    dim = dim % len(shape)
    others = [[*value.shape[:dim], *value.shape[dim + 1 :]] for value in tensors]
    if any(other != others[0] for other in others):
        raise RuntimeError(f"shapes {[tuple(value.shape) for value in tensors]} cannot be joined along axis {dim}")
    shape[dim] = sum(value.shape[dim] for value in tensors)
    return _blank(shape, tensors[0].dtype)


ANSWERS = frozenset(
    ["eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "logical_and", "logical_not", "logical_or", "lt", "ne"]
)
"""Operations on every number that give True or False."""
KNOWN: dict[str, Callable[..., Any]] = {
    "native_batch_norm": _normed,
    "native_layer_norm": _normed,
    "native_group_norm": _normed,
    "cat": _joined,
}
