"""Products of matrices by oneDNN, where it is faster at them than the library that torch gives them to.

That library is MKL, whose vectors have 512 bits on Intel's processors alone. oneDNN, which torch has for convolutions,
uses what a processor has: on AMD's of that width it takes half the time.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ...core.threads import work_in_hand

__all__ = ["fast_products", "onednn_affine", "rows_for_onednn"]

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


def fast_products() -> AbstractContextManager[Any]:
    """Inside, affine maps of whichever module are by oneDNN where they are large, and so are their gradients.

    Nothing changes where the computation in hand (`threads_for`) has no operation as large, or torch's own products are
    as fast.

    >>> with fast_products():
    ...     torch.nn.Linear(2, 3)(torch.zeros(1, 2)).shape
    torch.Size([1, 3])
    """
    return Products() if work_in_hand() >= LARGE and _mkl_is_narrow() else nullcontext()


class Products(TorchFunctionMode):
    """Every `functional.linear` in reach, of modules that know nothing of it, too."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is functional.linear:
            return _affine(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _affine(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`functional.linear`, whose names for its arguments these are."""
    if not _fits(input, weight, bias):
        return functional.linear(input, weight, bias)
    x = input.reshape(-1, input.shape[-1])
    asked = torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in (x, weight, bias))
    out = _Affine.apply(x, weight, bias) if asked else onednn_affine(x, weight, bias)
    return out if input.ndim == 2 else out.view(*input.shape[:-1], len(weight))


def _fits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether these are large plain matrices of one dtype, and nothing but gradients is asked of their product."""
    if x.ndim < 2 or weight.ndim != 2 or x.shape[-1] != weight.shape[1] or x.numel() * len(weight) < LARGE:
        return False
    parts = (x, weight) if bias is None else (x, weight, bias)
    plain = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in parts)
    return plain and not (
        torch.is_autocast_enabled("cpu")
        or torch._C._are_functorch_transforms_active()  # vmap, jvp and the like have rules for torch's own alone
        or forward_ad._current_level >= 0
    )


class _Affine(torch.autograd.Function):
    """x Wᵀ + b, with ∂/∂x = g W, ∂/∂W = gᵀ x, ∂/∂b = Σ_rows g."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, weight)
        return onednn_affine(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        product = torch.mm if torch.is_grad_enabled() else _product  # a gradient of the gradient is asked for, or not
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            product(g, weight) if to_x else None,
            product(g.mT, x) if to_weight else None,
            g.sum(0) if to_bias else None,
        )


def _product(a: Tensor, b: Tensor) -> Tensor:
    return onednn_affine(a, b.mT)


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
