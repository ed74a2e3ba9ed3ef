"""Boxes as numbers: (…, 4) with xmin, ymin, xmax, ymax in pixels. x goes right, y goes down; pixel 0 is from 0 to 1.

IoU(a, b) = |a ∩ b| / |a ∪ b|
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["areas", "clipped", "mirrored", "overlaps", "shared_areas"]


def areas(boxes: Tensor) -> Tensor:
    """The area of each box, (…,).

    >>> areas(torch.tensor([1.0, 1.0, 3.0, 4.0]))
    tensor(6.)
    """
    return (boxes[..., 2] - boxes[..., 0]).clamp_min(0) * (boxes[..., 3] - boxes[..., 1]).clamp_min(0)


def shared_areas(first: Tensor, second: Tensor) -> Tensor:
    """|a ∩ b| of every pair: (…, k, 4) and (…, m, 4) → (…, k, m)."""
    low = torch.maximum(first[..., :, None, :2], second[..., None, :, :2])
    high = torch.minimum(first[..., :, None, 2:], second[..., None, :, 2:])
    return (high - low).clamp_min(0).prod(-1)


def overlaps(first: Tensor, second: Tensor) -> Tensor:
    """IoU of every pair: (…, k, 4) and (…, m, 4) → (…, k, m); 0 where both are empty.

    >>> overlaps(torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.tensor([[1.0, 0.0, 3.0, 2.0], [2.0, 0.0, 3.0, 1.0]]))
    tensor([[0.3333, 0.0000]])
    """
    shared = shared_areas(first, second)
    union = areas(first)[..., :, None] + areas(second)[..., None, :] - shared
    return shared / torch.where(union > 0, union, 1)


def mirrored(boxes: Tensor, size: int, axis: int) -> Tensor:
    """Boxes in an image that is mirrored along x (axis 0) or y (axis 1), where it has this size.

    >>> mirrored(torch.tensor([[0.0, 0.0, 2.0, 1.0]]), 10, axis=0)
    tensor([[ 8.,  0., 10.,  1.]])
    """
    turned = boxes.clone()
    turned[..., axis], turned[..., axis + 2] = size - boxes[..., axis + 2], size - boxes[..., axis]
    return turned


def clipped(boxes: Tensor, height: int, width: int, least: float = 0.0) -> Tensor:
    """What of the boxes lies in an image of this size; NaN where that is no more than a fraction `least` of one.

    >>> clipped(torch.tensor([[-1.0, 0.0, 3.0, 2.0], [-3.0, 0.0, 1.0, 2.0]]), 10, 10, least=0.5)
    tensor([[0., 0., 3., 2.],
            [nan, nan, nan, nan]])
    """
    limits = boxes.new_tensor([width, height, width, height])
    inside = torch.minimum(boxes.clamp_min(0), limits)
    kept = areas(inside) > least * areas(boxes)
    return torch.where(kept.unsqueeze(-1), inside, torch.nan)
