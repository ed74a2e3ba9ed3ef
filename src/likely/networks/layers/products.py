"""Products of matrices by oneDNN, where it is faster at them than the library that torch gives them to.

That library is MKL, whose vectors have 512 bits on Intel's processors alone. oneDNN, which torch has for convolutions,
uses what a processor has: on AMD's of that width it takes half the time.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

__all__ = ["onednn_affine", "rows_for_onednn"]

LARGE = 1 << 22
"""Multiply-adds from which on a product is worth a call that costs some microseconds more."""


def rows_for_onednn(weight: Tensor) -> float:
    """From how many rows x on `onednn_affine` is the faster one at x Wᵀ and at the products of its gradients.

    >>> rows_for_onednn(torch.zeros(100, 64, dtype=torch.float64))
    inf
    """
    able = weight.ndim == 2 and weight.dtype == torch.float32 and weight.device.type == "cpu"
    return LARGE / weight.numel() if able and weight.numel() and _mkl_is_narrow() else math.inf


def onednn_affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, for x (n, d) and W (units, d) in float32."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


@cache
def _mkl_is_narrow() -> bool:
    """Whether torch's products are by MKL, on a processor of another maker with vectors of 512 bits."""
    both = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    if not both or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # older ones cannot tell the maker
    return str(capabilities.get("cpu_name", "")).startswith("AMD") and _is_there()


def _is_there() -> bool:
    """Whether this torch has the operator, and gives what is asked of it: it is none of the public ones."""
    x, weight, bias = (torch.ones(shape, dtype=torch.float32) for shape in ((2, 3), (4, 3), (4,)))
    try:
        product = onednn_affine(x, weight, bias)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.equal(product, torch.full_like(product, 4.0))
