from __future__ import annotations

import torch


def some(shape, dtype=torch.float32):
    """Numbers between 0 and 1, the same at every call."""
    return torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
