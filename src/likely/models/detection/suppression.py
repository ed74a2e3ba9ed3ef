"""Non-maximum suppression: of boxes that show the same object, the most probable one stays.

In the order of their probabilities, box j stays unless a box i < j that stays has its class and overlaps it:

    keepⱼ = not any( keepᵢ and sameᵢⱼ and IoU(i, j) > overlap,  i < j )

Box j depends on those before it alone, so the rule, applied to all boxes at once and again until nothing changes, ends
at what going through them one by one gives: after k rounds the first k are settled, and chains are short.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...data.geometry import overlaps

__all__ = ["leaders"]


def leaders(boxes: Tensor, labels: Tensor, overlap: float) -> Tensor:
    """Which box stands for each of k boxes in falling order of probability: itself where it stays. (n, k) for n images.

    A box that does not stay is that of the first one that stays and suppresses it.

    >>> boxes = torch.tensor([[[0.0, 0.0, 4.0, 4.0], [0.0, 1.0, 4.0, 5.0], [9.0, 0.0, 12.0, 4.0]]])
    >>> leaders(boxes, torch.tensor([[0, 0, 0]]), 0.5)
    tensor([[0, 0, 2]])
    """
    count = boxes.shape[-2]
    before = torch.ones(count, count, dtype=torch.bool, device=boxes.device).triu(1)
    same = labels.unsqueeze(-1) == labels.unsqueeze(-2)
    rivals = before & same & (overlaps(boxes, boxes) > overlap)  # (n, i, j): i would suppress j
    keep = torch.ones_like(labels, dtype=torch.bool)
    while True:
        suppressors = rivals & keep.unsqueeze(-1)
        now = ~suppressors.any(-2)
        if bool((now == keep).all()):
            break
        keep = now
    own = torch.arange(count, device=boxes.device).expand(labels.shape)
    return torch.where(keep, own, suppressors.to(torch.uint8).argmax(-2))
