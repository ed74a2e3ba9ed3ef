"""Changes of place: what is in an image moves, and so do the targets of its pixels and its boxes."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

from ...core.errors import DataError
from ...core.spec import require
from ..geometry import clipped, mirrored
from .base import Augment, aligned, axes_of, floats

__all__ = ["Crop", "Elastic", "Flip", "QuarterTurn", "Rotate", "Shift", "turned"]

KEPT = 0.5
"""Fraction of a box that must be left in a window for it to be a box there."""


class Flip(Augment):
    """Mirror a row with this probability: left to right, or upside down; a signal along its time.

    >>> Flip(1.0, "vertical")(torch.tensor([[[[1.0], [2.0]]]])).flatten()
    tensor([2., 1.])
    """

    probability: float = 0.5
    direction: Literal["horizontal", "vertical"] = "horizontal"

    moves = True

    def validate(self) -> None:
        require(0 <= self.probability <= 1, self, "probability", "between 0 and 1")

    def change(self, x: Any) -> Tensor:
        return self._flipped(x)[0]

    def with_boxes(self, x: Any, boxes: Tensor) -> tuple[Any, Tensor]:
        flipped, chosen, axis = self._flipped(x)
        mirrored_boxes = mirrored(boxes, x.shape[axis], axis=3 - axis)
        return flipped, torch.where(chosen.view(-1, 1, 1), mirrored_boxes, boxes)

    def _flipped(self, x: Any) -> tuple[Tensor, Tensor, int]:
        """x with some rows mirrored, which ones, and along which axis."""
        axes = axes_of(self, x, images=self.direction == "vertical")
        axis = axes[-1] if self.direction == "horizontal" else axes[0]
        chosen = torch.rand(len(x), device=x.device) < self.probability
        return torch.where(chosen.view(-1, *(1,) * (x.ndim - 1)), x.flip(axis), x), chosen, axis


class Crop(Augment):
    """Pad every side and cut out a window of the old size at random: a shift by up to `padding` positions.

    `fill` says what comes in from outside: "zeros", the value of the "edge", or the mirror image ("reflect").

    >>> sorted({tuple(Crop(1)(torch.tensor([[1.0, 2.0]]))[0].tolist()) for _ in range(50)})
    [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0)]
    """

    padding: int = 2
    fill: Literal["zeros", "edge", "reflect"] = "zeros"

    moves = True

    def validate(self) -> None:
        require(self.padding >= 0, self, "padding", "0 or more positions")

    def change(self, x: Any) -> Tensor:
        return self._cut(x)[0]

    def with_boxes(self, x: Any, boxes: Tensor) -> tuple[Any, Tensor]:
        """Boxes are cut at the border of the image, and are gone where half of one or more lies outside."""
        cut, moved = self._cut(x)
        down, across = moved
        gone = torch.cat([across, down, across, down], 1).unsqueeze(1).to(boxes)  # (n, 1, 4)
        inside = clipped(boxes[..., :4] - gone, x.shape[-2], x.shape[-1], KEPT)
        return cut, torch.cat([inside, boxes[..., 4:]], -1)

    def _cut(self, x: Any) -> tuple[Tensor, list[Tensor]]:
        """The windows, and how far each is moved along every axis, (n, 1)."""
        moved = []
        for axis in axes_of(self, x):
            size = x.shape[axis]
            if self.padding >= size:
                raise DataError(f"{self!r} needs more than {self.padding} positions; X has shape {tuple(x.shape)}.")
            index = _window(x, axis, self.padding)
            moved.append(index[:, :1])
            inside = (index >= 0) & (index < size)
            if self.fill == "reflect":
                index = torch.where(index < 0, -index, index)
                index = torch.where(index >= size, 2 * (size - 1) - index, index)
            taken = torch.take_along_dim(x, aligned(index.clamp(0, size - 1), x, axis), axis)
            x = torch.where(aligned(inside, x, axis), taken, 0) if self.fill == "zeros" else taken
        return x, moved


class Shift(Augment):
    """Roll a row by up to `reach` positions: what leaves on one side comes back on the other.

    >>> Shift(5)(torch.tensor([[1.0, 2.0, 3.0]])).sum()
    tensor(6.)
    """

    reach: int = 2

    moves = True

    def validate(self) -> None:
        require(self.reach >= 0, self, "reach", "0 or more positions")

    def change(self, x: Any) -> Tensor:
        for axis in axes_of(self, x):
            x = torch.take_along_dim(x, aligned(_window(x, axis, self.reach) % x.shape[axis], x, axis), axis)
        return x


class Rotate(Augment):
    """Turn an image about its centre by an angle between −degrees and degrees; corners from outside are 0.

    Positive angles turn counter-clockwise; values between pixels are interpolated.

    >>> Rotate(0)(torch.ones(1, 1, 2, 2)).flatten()
    tensor([1., 1., 1., 1.])
    """

    degrees: float = 15.0

    moves = True

    def validate(self) -> None:
        require(0 <= self.degrees <= 180, self, "degrees", "between 0 and 180")

    def change(self, x: Any) -> Tensor:
        axes_of(self, x, images=True)
        return turned(floats(self, x), self._angles(x)) if self.degrees else x

    def move(self, x: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
        axes_of(self, x, images=True)
        if not self.degrees:
            return x, beside
        angles = self._angles(x)
        return turned(floats(self, x), angles), turned(beside, angles, "nearest")

    def _angles(self, x: Tensor) -> Tensor:
        return self.degrees * (2 * torch.rand(len(x), device=x.device) - 1)


class QuarterTurn(Augment):
    """Turn a square image by 0, 90, 180 or 270 degrees, each with the same probability.

    >>> QuarterTurn()(torch.ones(1, 1, 2, 2)).flatten()
    tensor([1., 1., 1., 1.])
    """

    moves = True

    def change(self, x: Any) -> Tensor:
        return self._turned(x)[0]

    def with_boxes(self, x: Any, boxes: Tensor) -> tuple[Any, Tensor]:
        turned, quarters = self._turned(x)
        quarters, side = quarters.view(-1, 1, 1), x.shape[3]
        upside_down = torch.where(quarters >= 2, mirrored(mirrored(boxes, side, axis=0), side, axis=1), boxes)
        left, top, right, bottom = upside_down[..., :4].unbind(-1)
        aside = torch.stack([top, side - right, bottom, side - left, *upside_down[..., 4:].unbind(-1)], -1)
        return turned, torch.where(quarters % 2 == 1, aside, upside_down)

    def _turned(self, x: Any) -> tuple[Tensor, Tensor]:
        """The images, and by how many quarters each is turned, counter-clockwise."""
        axes_of(self, x, images=True)
        if x.shape[2] != x.shape[3]:
            raise DataError(f"{self!r} needs square images; X has images of {x.shape[2]} × {x.shape[3]} pixels.")
        quarters = torch.randint(4, (len(x), 1, 1, 1), device=x.device)
        upside_down = torch.where(quarters >= 2, x.flip(2, 3), x)
        return torch.where(quarters % 2 == 1, upside_down.rot90(1, (2, 3)), upside_down), quarters


class Elastic(Augment):
    """Stretch and squeeze an image, as tissue is: every pixel comes from a place moved by a smooth random field.

    The field is normal with a standard deviation of `reach` pixels at points `cell` pixels apart, and cubic between
    them; what it brings from outside the image is its mirror image.

    >>> Elastic(0.0)(torch.ones(1, 1, 2, 2)).flatten()
    tensor([1., 1., 1., 1.])
    """

    reach: float = 3.0
    cell: int = 32

    moves = True

    def validate(self) -> None:
        require(self.reach >= 0, self, "reach", "0 or more pixels")
        require(self.cell > 0, self, "cell", "1 or more pixels")

    def change(self, x: Any) -> Tensor:
        axes_of(self, x, images=True)
        return _sampled(floats(self, x), self._places(x)) if self.reach else x

    def move(self, x: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
        axes_of(self, x, images=True)
        if not self.reach:
            return x, beside
        places = self._places(x)
        return _sampled(floats(self, x), places), _sampled(beside, places, "nearest")

    def _places(self, x: Tensor) -> Tensor:
        """Where each pixel comes from, (n, height, width, 2); both axes run from −1 to 1."""
        sizes = list(x.shape[2:])
        points = [max(2, -(-size // self.cell) + 1) for size in sizes]
        field = torch.randn(len(x), 2, *points, device=x.device, dtype=x.dtype) * self.reach
        smooth = interpolate(field, sizes, mode="bicubic", align_corners=True)
        along = smooth * 2 / smooth.new_tensor(sizes[::-1]).view(1, 2, 1, 1)
        still = affine_grid(torch.eye(2, 3).to(x).expand(len(x), 2, 3), list(x.shape), align_corners=False)
        return still + along.movedim(1, -1)


def turned(x: Tensor, degrees: Tensor, between: Literal["bilinear", "nearest"] = "bilinear") -> Tensor:
    """Images (n, c, h, w), each turned counter-clockwise by its own angle, with 0 from outside.

    What lies `between` pixels is interpolated, or that of the nearest one.

    >>> turned(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), torch.tensor([90.0])).round()
    tensor([[[[2., 4.],
              [1., 3.]]]])
    """
    height, width = x.shape[2:]
    angle = torch.deg2rad(degrees.to(x))
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # from a position in the new image to where its value comes from; both axes run from −1 to 1
    across = torch.stack([cosine, -sine * (height / width), zero], -1)
    down = torch.stack([sine * (width / height), cosine, zero], -1)
    grid = affine_grid(torch.stack([across, down], 1), list(x.shape), align_corners=False)
    return grid_sample(x, grid, mode=between, padding_mode="zeros", align_corners=False)


def _sampled(x: Tensor, places: Tensor, between: Literal["bilinear", "nearest"] = "bilinear") -> Tensor:
    return grid_sample(x, places, mode=between, padding_mode="reflection", align_corners=False)


def _window(x: Tensor, axis: int, reach: int) -> Tensor:
    """Positions along an axis, moved by up to `reach` for each row: (n, size)."""
    moved = torch.randint(-reach, reach + 1, (len(x), 1), device=x.device)
    return torch.arange(x.shape[axis], device=x.device) + moved
