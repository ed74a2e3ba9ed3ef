"""Grids of cells over an image, and which cell a box belongs to.

A grid of stride s cuts the image into cells of s × s pixels. A box belongs to the finest grid on which it is at most
`SPAN` cells long, and there to the cell that has its centre. The cell tells it by four logarithms of distances, in
cells, each from the far side of the cell to an edge of the box, so that all are above 0 wherever the centre lies:

    left = log (x₁ − xmin)/s   top = log (y₁ − ymin)/s   right = log (xmax − x₀)/s   bottom = log (ymax − y₀)/s

for the cell from (x₀, y₀) to (x₁, y₁).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

__all__ = ["EDGES", "Grids"]

EDGES = ("left", "top", "right", "bottom")
SPAN = 8
"""Cells that a box may be long on a grid; longer ones belong to a coarser one."""
NEAR = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
"""Where a box goes, in cells from its own, if another box has that."""


@dataclass(frozen=True)
class Grids:
    """The cells of all grids: one grid after the other, finest first, each row by row.

    >>> grids = Grids((4, 8), (16, 24))
    >>> grids.shapes, grids.count
    (((4, 6), (2, 3)), 30)
    >>> box = torch.tensor([[[3.0, 2.0, 9.0, 8.0]]])
    >>> cell = grids.cells(box)
    >>> cell, grids.decoded(grids.coordinates(box, cell), cell)
    (tensor([[7]]), tensor([[[3., 2., 9., 8.]]]))
    """

    strides: tuple[int, ...]
    sides: tuple[int, int]
    """Height and width in pixels, multiples of every stride."""

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each grid."""
        return tuple((self.sides[0] // stride, self.sides[1] // stride) for stride in self.strides)

    @property
    def count(self) -> int:
        """Cells of all grids."""
        return sum(rows * columns for rows, columns in self.shapes)

    @cached_property
    def level(self) -> Tensor:
        """Which grid each cell belongs to, (count,)."""
        sizes = torch.tensor([rows * columns for rows, columns in self.shapes])
        return torch.repeat_interleave(torch.arange(len(self.strides)), sizes)

    @cached_property
    def stride(self) -> Tensor:
        """The side of each cell, in pixels, (count,)."""
        return torch.tensor(self.strides, dtype=torch.float32)[self.level]

    @cached_property
    def corners(self) -> Tensor:
        """x₀ and y₀ of each cell, in pixels, (count, 2)."""
        parts = []
        for stride, (rows, columns) in zip(self.strides, self.shapes, strict=True):
            down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            parts.append(stride * torch.stack([across, down], -1).reshape(-1, 2).float())
        return torch.cat(parts)

    # --- from boxes to cells ------------------------------------------------------------------------------------
    def cells(self, boxes: Tensor) -> Tensor:
        """The cell of each box (n, m, 4), (n, m); −1 where there is no box (NaN), or no room for it.

        Of two boxes whose centres are in one cell, the second goes to one beside it.
        """
        device = boxes.device
        present = ~boxes.isnan().any(-1)
        known = torch.where(present.unsqueeze(-1), boxes, 0.0)
        longest = (known[..., 2:] - known[..., :2]).amax(-1, keepdim=True)
        strides = torch.tensor(self.strides, device=device)
        level = (longest > SPAN * strides[:-1]).sum(-1)
        rows, columns = torch.tensor(self.shapes, device=device).T
        first = torch.cat([rows.new_zeros(1), (rows * columns).cumsum(0)])[level]
        rows, columns = rows[level], columns[level]
        across, down = ((known[..., :2] + known[..., 2:]) / 2 / strides[level].unsqueeze(-1)).floor().long().unbind(-1)
        across, down = torch.minimum(across.clamp_min(0), columns - 1), torch.minimum(down.clamp_min(0), rows - 1)

        nowhere, number = self.count, torch.arange(boxes.shape[1], device=device).expand(boxes.shape[:2])
        taken = torch.zeros(len(boxes), nowhere + 1, dtype=torch.bool, device=device)
        taken[:, nowhere] = True
        cells, waiting = torch.full_like(number, -1), present
        for more_down, more_across in NEAR:
            i, j = down + more_down, across + more_across
            inside = waiting & (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
            wanted = torch.where(inside, first + i * columns + j, nowhere)
            near = inside & (self._distances(known, wanted.clamp_max(nowhere - 1)) > 0).all(-1)
            wanted = torch.where(near & ~taken.gather(1, wanted), wanted, nowhere)
            winner = torch.full_like(taken, boxes.shape[1], dtype=torch.long)
            winner.scatter_reduce_(1, wanted, number, "amin")
            wins = (wanted < nowhere) & (winner.gather(1, wanted) == number)
            cells = torch.where(wins, wanted, cells)
            taken.scatter_(1, torch.where(wins, wanted, nowhere), True)
            waiting = waiting & ~wins
            if not bool(waiting.any()):
                break
        return cells

    def coordinates(self, boxes: Tensor, cells: Tensor) -> Tensor:
        """The logarithms that tell boxes (n, m, 4) from cells (n, m)."""
        return (self._distances(boxes, cells) / self._stride(cells, boxes)).log()

    def _distances(self, boxes: Tensor, cells: Tensor) -> Tensor:
        low = self.corners.to(boxes)[cells]
        return torch.cat([low + self._stride(cells, boxes) - boxes[..., :2], boxes[..., 2:] - low], -1)

    def _stride(self, cells: Tensor, like: Tensor) -> Tensor:
        return self.stride.to(like)[cells].unsqueeze(-1)

    # --- and back -----------------------------------------------------------------------------------------------
    def decoded(self, coordinates: Tensor, cells: Tensor) -> Tensor:
        """The boxes (…, 4) that cells (…) tell by these logarithms: the inverse of `coordinates`."""
        low, stride = self.corners.to(coordinates)[cells], self._stride(cells, coordinates)
        distances = stride * coordinates.exp()
        return torch.cat([low + stride - distances[..., :2], low + distances[..., 2:]], -1)
