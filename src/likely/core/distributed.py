"""More than one process: under `torchrun` each fits its own rows, and what they learn is summed."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["agreed", "broadcast_", "rank", "shard", "sum_", "world"]


def world() -> int:
    """How many processes fit together: 1, unless `torchrun` started this one."""
    if not dist.is_available():
        return 1
    if not dist.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) <= 1 or "MASTER_ADDR" not in os.environ:
            return 1
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        atexit.register(_leave)
    return dist.get_world_size()


def _leave() -> None:
    """End the group before the interpreter ends: its threads, still running then, would abort the process."""
    if dist.is_initialized():
        dist.destroy_process_group()


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world() > 1 else 0


def agreed(seed: int) -> int:
    """The seed of process 0, for all."""
    number = torch.tensor(seed)
    broadcast_(number)
    return int(number)


def shard(rows: int) -> slice:
    """The contiguous rows that are this process's part of all of them."""
    parts, me = world(), rank()
    return slice(rows * me // parts, rows * (me + 1) // parts)


def sum_(*tensors: Tensor) -> None:
    """Replace each tensor by its sum over all processes."""
    if world() > 1:
        _together(tensors, dist.all_reduce)


def broadcast_(*tensors: Tensor) -> None:
    """Replace each tensor by that of process 0."""
    if world() > 1:
        _together(tensors, lambda flat: dist.broadcast(flat, src=0))


def _together(tensors: tuple[Tensor, ...], exchange: Callable[[Tensor], object]) -> None:
    """One message for all tensors of a kind, instead of one each: small ones cost a round trip, whatever their size."""
    kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for group in kinds.values():
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in group])
        exchange(flat)
        for tensor, part in zip(group, flat.split([t.numel() for t in group]), strict=True):
            tensor.detach().copy_(part.view_as(tensor))
