"""Where a detector's training begins: η of the cells without a look at the image, one for each grid."""

from __future__ import annotations

import torch
from torch import Tensor

from ...likelihoods import Product
from .grids import Grids

__all__ = ["base_rates"]

FEW = 10
"""Boxes below which a grid begins with the classes and edges of all boxes."""


def base_rates(likelihood: Product, targets: Tensor, grids: Grids) -> tuple[Tensor, Tensor]:
    """Offsets (grids, size) and units (size,) of η, from targets (n, count, columns) of training images.

    >>> from likely.likelihoods import Laplace
    >>> from likely.models.detection.cells import cell_likelihood
    >>> targets = torch.tensor([[[1.0, 0.0, 0.0, 1.0, 1.0], [0.0] + [torch.nan] * 4]])
    >>> offset, unit = base_rates(cell_likelihood(1, Laplace("input")), targets, Grids((4,), (4, 8)))
    >>> offset[0, [0, 1, 5]]
    tensor([0., 0., 1.])
    """
    rest = Product({name: part for name, part in likelihood.parts.items() if name != "presence"})
    present = targets[..., 0] == 1
    everything = targets[present][:, 1:].double()
    common, unit = rest.baseline(everything, torch.ones(len(everything), dtype=torch.float64))
    offsets = []
    for level in range(len(grids.strides)):
        own = present[:, grids.level == level]
        log_odds = ((own.sum() + 0.5) / ((~own).sum() + 0.5)).double().log()
        boxes = targets[:, grids.level == level][own][:, 1:].double()
        start = rest.baseline(boxes, torch.ones(len(boxes), dtype=torch.float64))[0] if len(boxes) >= FEW else common
        offsets.append(torch.cat([log_odds.view(1), start]))
    return torch.stack(offsets).float(), torch.cat([unit.new_ones(1), unit]).float()
