"""What a detector found in one image, and how it follows from what cells say.

Members s of the posterior have weights wₛ; cell c has an object of class k with probability

    P(c, k) = Σₛ wₛ p(present | ηₛ) p(k | ηₛ),

and its edges have the mean and the variance of the members that see one. Neighbouring cells may see the same object:
boxes that overlap are one detection, there with the probability that any of these cells has it,

    1 − Π_c (1 − P(c, k)),      edges: the mean over cells, weighted by P(c, k); variances within and between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.random import current_generator
from ...likelihoods import Product
from .grids import EDGES, Grids
from .suppression import leaders

__all__ = ["Detections", "decided", "drawn", "seen"]

CANDIDATES = 400
"""Cells and classes of an image that are looked at, the most probable first."""


@dataclass(frozen=True, eq=False)
class Detections:
    """Objects in one image, the most probable first: `boxes` (k, 4) in pixels, `labels`, `probabilities`, `scales`.

    `scales` (k, 4) are the standard deviations, in pixels, of the four edges xmin, ymin, xmax, ymax.

    >>> none = Detections(np.empty((0, 4)), np.empty(0, int), np.empty(0), np.empty((0, 4)))
    >>> len(none), none
    (0, Detections(none))
    """

    boxes: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray
    scales: np.ndarray

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        shown = [f"{label} {p:.2f}" for label, p in zip(self.labels[:5], self.probabilities[:5], strict=True)]
        more = [f"… {len(self) - 5} more"] if len(self) > 5 else []
        return f"Detections({', '.join([*shown, *more]) or 'none'})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Detections):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in vars(self))

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The numbers of each object, (k, 9): its box, its probability and its scales."""
        return np.column_stack([self.boxes, self.probabilities, self.scales]).astype(dtype or np.float64)

    def above(self, threshold: float) -> Detections:
        """Those that are at least so probable."""
        kept = self.probabilities >= threshold
        return Detections(*(part[kept] for part in (self.boxes, self.labels, self.probabilities, self.scales)))


def seen(likelihood: Product, grids: Grids, eta: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """P(c, k) (n, count, classes), and mean and variance of edges in pixels (n, count, 4), from η of all members."""
    marginals: dict[str, Any] = likelihood.distribution(eta).marginals
    weight = weights.to(eta).view(-1, 1, 1)
    present = weight * marginals["presence"].probs  # (members, n, count)
    labels = marginals["label"].probs if "label" in marginals else torch.ones_like(present).unsqueeze(-1)
    classes = (present.unsqueeze(-1) * labels).sum(0)
    coordinates = torch.stack([marginals[name].mean for name in EDGES], -1)
    deviations = torch.stack([marginals[name].stddev for name in EDGES], -1)
    cells = torch.arange(grids.count, device=eta.device)
    edges = grids.decoded(coordinates, cells)
    # to first order an edge deviates by its distance times the deviation of the logarithm
    variances = (deviations * coordinates.exp() * grids.stride.to(eta).unsqueeze(-1)).square()
    fraction = (present / present.sum(0).clamp_min(torch.finfo(eta.dtype).tiny)).unsqueeze(-1)
    mean = (fraction * edges).sum(0)
    return classes, mean, (fraction * (variances + (edges - mean).square())).sum(0)


def decided(
    classes: Tensor, edges: Tensor, variances: Tensor, *, threshold: float, overlap: float, most: int
) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Boxes, class numbers, probabilities and scales of each image, from what its cells see."""
    rows, count, kinds = classes.shape
    values, order = classes.flatten(1).topk(min(CANDIDATES, count * kinds), 1)  # (n, k)
    cell, label = order // kinds, order % kinds
    boxes, spread = (part.gather(1, cell.unsqueeze(-1).expand(-1, -1, 4)) for part in (edges, variances))
    lead = leaders(boxes, label, overlap)
    index = lead.unsqueeze(-1).expand(-1, -1, 4)

    def gathered(part: Tensor) -> Tensor:
        at = lead if part.ndim == 2 else index
        return torch.zeros_like(part).scatter_add(1, at, part)

    mass, weight = gathered(values), values.unsqueeze(-1)
    total = mass.unsqueeze(-1).clamp_min(torch.finfo(values.dtype).tiny)
    middle = gathered(weight * boxes) / total
    off = (boxes - middle.gather(1, index)).square()
    scales = (gathered(weight * (spread + off)) / total).sqrt()
    probabilities = -torch.expm1(gathered(torch.log1p(-values.clamp_max(1 - 1e-7))))
    kept = (lead == torch.arange(lead.shape[1], device=lead.device)) & (probabilities >= threshold)
    answers = []
    for row in range(rows):
        own = kept[row].nonzero().ravel()
        own = own[probabilities[row, own].argsort(descending=True, stable=True)][:most]
        answers.append((middle[row, own], label[row, own], probabilities[row, own], scales[row, own]))
    return answers


def drawn(
    likelihood: Product, grids: Grids, eta: Tensor, weights: Tensor, sides: tuple[int, int]
) -> list[tuple[Tensor, Tensor]]:
    """One draw of the boxes (k, 4) and class numbers (k,) of each image: what its cells say, each by one member.

    Cells are independent and their members averaged, as in `log_prob`. Boxes end at the sides of the image; what has no
    area there is left out.
    """
    rows, count, size = eta.shape[1:]
    generator = current_generator(eta.device)
    chosen = torch.multinomial(weights.to(eta), rows * count, replacement=True, generator=generator)
    own = eta.gather(0, chosen.view(1, rows, count, 1).expand(1, rows, count, size)).squeeze(0)
    targets: Tensor = likelihood.distribution(own).sample()
    cells = torch.arange(grids.count, device=eta.device)
    height, width = sides
    limits = targets.new_tensor([width, height, width, height])
    boxes = torch.minimum(grids.decoded(targets[..., -4:], cells).clamp_min(0), limits)
    there = (targets[..., 0] > 0) & (boxes[..., 2:] > boxes[..., :2]).all(-1)
    labels = targets[..., 1].long() if "label" in likelihood.parts else torch.zeros_like(there, dtype=torch.long)
    return [(box[kept], label[kept]) for box, label, kept in zip(boxes, labels, there, strict=True)]
