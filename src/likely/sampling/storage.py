"""Room for the draws of chains: in memory, or in a file where they would fill it."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError, ModelFileError

__all__ = ["room_for"]

IN_MEMORY = 1 << 30
"""Bytes of draws beyond which they are kept in a file."""


def room_for(
    shape: tuple[int, ...], path: str | None, *, again: bool, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, np.memmap[Any, Any] | None]:
    """A tensor for draws: in memory, or in a file if `path` names one or the memory would be large.

    `again` takes up the file as it is. Without a name, the file is one that vanishes with the tensor.
    """
    if path is None and math.prod(shape) * 8 <= IN_MEMORY:
        return torch.empty(shape, dtype=dtype), None
    kind = np.int64 if dtype == torch.int64 else np.float64
    try:
        if path is None:
            with tempfile.TemporaryFile(prefix="likely-draws-") as file:
                made = np.memmap(file, kind, "w+", shape=shape)
                return torch.from_numpy(made), made
        whole = os.path.exists(path) and os.path.getsize(path) == math.prod(shape) * 8
        if again and not whole:
            raise ModelFileError(f"stream {path} does not hold the draws of the checkpoint; delete both to begin anew.")
        made = np.memmap(path, kind, "r+" if again else "w+", shape=shape)
        return torch.from_numpy(made), made
    except OSError as error:
        if isinstance(error, ModelFileError):
            raise
        raise DataError(
            f"stream: cannot keep {math.prod(shape) * 8 / 1e9:.2g} GB of draws in {path or 'a temporary file'} "
            f"({error.strerror}); give stream= a file on a disk with room, fewer draws, or a larger thin."
        ) from error
