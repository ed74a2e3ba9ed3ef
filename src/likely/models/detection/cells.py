"""What the cells of an image say: whether there is an object, of which class, and where its edges are.

    log p(boxes | x) = Σ_cells [ log p(present | η) + present · ( log p(class | η) + Σ_edges log p(edge | η) ) ]

Presence is Bernoulli, the class Categorical, and each edge has a likelihood of real numbers (Laplace) in
log-coordinates: a `Product`, in which what an empty cell does not have is missing. Densities are of edges in pixels, so
each edge of a box has the Jacobian −log distance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...core.errors import DataError
from ...inference.dataset import Batch
from ...inference.objective import Objective
from ...likelihoods import Bernoulli, Categorical, Likelihood, Product
from .grids import EDGES, Grids

__all__ = ["CellObjective", "cell_likelihood", "cell_targets", "check_room", "sides_of"]

BLOCK = 64
"""Images whose boxes are given their cells at once."""


def cell_likelihood(classes: int, edge: Likelihood) -> Product:
    """p(target of one cell | η): presence, class (where there are several) and the four edges.

    >>> from likely.likelihoods import Laplace
    >>> list(cell_likelihood(3, Laplace("input")).parts)
    ['presence', 'label', 'left', 'top', 'right', 'bottom']
    """
    label: dict[str, Likelihood] = {} if classes == 1 else {"label": Categorical(classes)}
    return Product({"presence": Bernoulli(), **label, **dict.fromkeys(EDGES, edge)})


def cell_targets(grids: Grids, objects: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Targets of all cells, (n, count, columns), and Σ log |∂ log-coordinates / ∂ pixels| of each image, (n,).

    `objects` are (n, m, 5): boxes and the number of a class, NaN where an image has fewer.

    >>> targets, _ = cell_targets(Grids((4,), (4, 8)), torch.tensor([[[0.0, 0.0, 4.0, 4.0, 1.0]]]), 3)
    >>> targets
    tensor([[[1., 1., 0., 0., 0., 0.],
             [0., nan, nan, nan, nan, nan]]])
    """
    boxes, labels = objects[..., :4], objects[..., 4:]
    cells = grids.cells(boxes)
    placed = cells >= 0
    inside = cells.clamp_min(0)
    coordinates = grids.coordinates(boxes, inside)
    known = [torch.ones_like(labels), *([labels] if classes > 1 else []), coordinates]
    values = torch.cat(known, -1)
    targets = values.new_full((len(objects), grids.count + 1, values.shape[-1]), torch.nan)
    targets[..., 0] = 0.0
    index = torch.where(placed, cells, grids.count).unsqueeze(-1).expand_as(values)
    targets.scatter_(1, index, values)
    pixels = (coordinates + grids.stride.to(boxes)[inside].log().unsqueeze(-1)).sum(-1)
    return targets[:, :-1], -torch.where(placed, pixels, 0.0).sum(-1)


def check_room(grids: Grids, objects: Tensor) -> None:
    """Raise a `DataError` unless every box of `objects` (n, m, 5) has a cell of its own.

    >>> check_room(Grids((4,), (4, 4)), torch.tensor([[[0.0, 0.0, 4.0, 4.0, 0.0], [0.0, 0.0, 4.0, 3.0, 0.0]]]))
    Traceback (most recent call last):
    likely.core.errors.DataError: boxes[0] has 2 boxes, more at one place than there are cells (1 finds none); ...
    """
    for first in range(0, len(objects), BLOCK):
        boxes = objects[first : first + BLOCK, :, :4]
        there = ~boxes[..., 0].isnan()
        left = (there & (grids.cells(boxes) < 0)).sum(1)
        if bool(left.any()):
            image = int(left.bool().int().argmax())
            count, without = int(there[image].sum()), int(left[image])
            raise DataError(
                f"boxes[{first + image}] has {count} boxes, more at one place than there are cells ({without} "
                f"{'finds' if without == 1 else 'find'} none); a finer stride than {grids.strides[0]} would hold them."
            )


class CellObjective(Objective):
    """log p of all boxes of an image, from η of its cells (…, n, count, size)."""

    offers = frozenset({"losses", "rows", "exact"})
    name = "Detector"

    def __init__(self, likelihood: Product, strides: tuple[int, ...], multiple: int) -> None:
        self.likelihood, self.strides, self.multiple = likelihood, strides, multiple

    def __repr__(self) -> str:
        return f"{self.likelihood!r}, at cells of {self.strides}"

    @property
    def classes(self) -> int:
        """How many classes there are."""
        label = self.likelihood.parts.get("label")
        return label.classes if isinstance(label, Categorical) and label.classes else 1

    def grids(self, x: Tensor) -> Grids:
        """The cells of images (…, height, width)."""
        return Grids(self.strides, sides_of(x, self.multiple))

    def log_prob(self, output: Tensor, batch: Batch) -> Tensor:
        cells, jacobian = self.cell_log_prob(output, batch)
        return cells.sum(-1) + jacobian

    def cell_log_prob(self, output: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """log p of each cell's target, (…, n, count), and the Jacobian of each image."""
        objects = batch.y.reshape(-1, *batch.y.shape[-2:])
        targets, jacobian = cell_targets(self.grids(batch.x), objects, self.classes)
        lead = batch.y.shape[:-2]
        log_prob = self.likelihood.log_prob(output, targets.view(*lead, *targets.shape[1:]))
        return log_prob, jacobian.view(lead)


def sides_of(x: Tensor, multiple: int) -> tuple[int, int]:
    """Height and width of images (…, height, width), made a multiple of so many pixels.

    >>> sides_of(torch.zeros(1, 3, 17, 32), 16)
    (32, 32)
    """
    height, width = (-(-side // multiple) * multiple for side in x.shape[-2:])
    return height, width
