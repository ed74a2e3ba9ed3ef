"""Margins and their gradients in x: what attacks that look for the nearest boundary step by."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..optim.ascent import FLAT

__all__ = ["nearest_margins"]


def nearest_margins(victim: Any, x: Tensor, y: Tensor, ways: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `ways` largest margins of each row (n, ways), their gradients (n, ways, …), and the margin of the row (n,).

    One pass forward, and one back for each way. A way that is none (−∞) is as far as can be: its gradient is 0.
    """
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        margins = victim.margins(at, y)
        if not margins.requires_grad:
            raise SpecError(FLAT)
        chosen, _ = margins.topk(min(ways, margins.shape[1]), 1)
        finite = torch.isfinite(chosen.detach())
        last = int(finite.sum(1).max())
        gradients = [
            torch.autograd.grad(chosen[:, way][finite[:, way]].sum(), at, retain_graph=way + 1 < last)[0]
            for way in range(last)
        ]
    chosen = chosen.detach()[:, :last]
    return chosen, torch.stack(gradients, 1), chosen[:, 0]
