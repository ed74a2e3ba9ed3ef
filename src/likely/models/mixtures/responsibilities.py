"""Responsibilities, rᵢₖ = πₖ p(xᵢ | k) / Σⱼ πⱼ p(xᵢ | j), block by block."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

__all__ = ["blocks", "over_components", "split", "total"]

FEW = 32
"""So many components are summed faster by a product: 3 of them in a fifteenth of the time."""

LEAST = -1e30
"""Stands in for −∞, which has no difference from itself."""


def blocks(rows: slice, width: int) -> Iterator[slice]:
    """Parts of the rows, such that an array of `width` numbers per row stays in the cache.

    >>> list(blocks(slice(0, 700), 2**20))
    [slice(0, 256, None), slice(256, 512, None), slice(512, 700, None)]
    """
    size = min(max(2**17 // width, 256), 4096)
    for start in range(rows.start, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))


def split(log_prob: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Responsibilities (n, S, K) and log p(x) (n, S) from log p(x | k); a row that cannot be has none.

    >>> import torch
    >>> r, evidence = split(torch.tensor([[[0.5, 0.1]]]).log(), torch.tensor([[0.5, 0.5]]))
    >>> r.ravel(), evidence.exp().ravel()
    (tensor([0.8333, 0.1667]), tensor([0.3000]))
    """
    joint = log_prob + weights.log()
    top = joint.amax(-1, keepdim=True)
    relative = joint.sub_(top.clamp_min(LEAST)).exp_()  # the one exponential of the E-step
    sums = over_components(relative)
    return relative.div_(sums.clamp_min(1e-30)), (top + sums.log()).squeeze(-1)


def over_components(value: Tensor) -> Tensor:
    """Σₖ of (…, K), (…, 1): as a product where there are few components, which torch sums one row after the other.

    >>> import torch
    >>> over_components(torch.ones(2, 3))
    tensor([[3.],
            [3.]])
    """
    few = value.shape[-1] <= FEW
    return value @ value.new_ones(value.shape[-1], 1) if few else value.sum(-1, keepdim=True)


def total(value: Tensor, weight: Tensor | None) -> Tensor:
    """The weighted sum over rows of (n, S).

    >>> import torch
    >>> total(torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 3.0]))
    tensor([7.])
    """
    return value.sum(0) if weight is None else weight @ value
