"""Where a detector's training begins: η of the cells without a look at the image, one for each grid."""

from __future__ import annotations

import torch
from torch import Tensor

from ...likelihoods import Product
from .grids import Grids

__all__ = ["base_rates"]

FEW = 10
"""Boxes below which a grid begins with the classes and edges of all boxes."""


def base_rates(
    likelihood: Product, targets: Tensor, grids: Grids, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Offsets (grids, size) and units (size,) of η, from targets (n, count, columns) of training images.

    An image counts as often as its `weight` (n,) says.

    >>> from likely.likelihoods import Laplace
    >>> from likely.models.detection.cells import cell_likelihood
    >>> targets = torch.tensor([[[1.0, 0.0, 0.0, 1.0, 1.0], [0.0] + [torch.nan] * 4]])
    >>> offset, unit = base_rates(cell_likelihood(1, Laplace("input")), targets, Grids((4,), (4, 8)))
    >>> offset[0, [0, 1, 5]]
    tensor([0., 0., 1.])
    """
    rest = Product({name: part for name, part in likelihood.parts.items() if name != "presence"})
    present = targets[..., 0] == 1
    counts = torch.ones(len(targets)) if weight is None else weight
    times = counts.double().unsqueeze(1).expand(present.shape)
    common, unit = rest.baseline(targets[present][:, 1:].double(), times[present])
    offsets = []
    for level in range(len(grids.strides)):
        cells = grids.level == level
        own, of_cells = present[:, cells], times[:, cells]
        log_odds = ((of_cells[own].sum() + 0.5) / (of_cells[~own].sum() + 0.5)).log()
        boxes, of_boxes = targets[:, cells][own][:, 1:].double(), of_cells[own]
        start = rest.baseline(boxes, of_boxes)[0] if of_boxes.sum() >= FEW else common
        offsets.append(torch.cat([log_odds.view(1), start]))
    return torch.stack(offsets).float(), torch.cat([unit.new_ones(1), unit]).float()
