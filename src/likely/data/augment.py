"""Augmentation: training rows changed at random in ways that leave their targets valid, anew in every batch.

Each is a tensor program on a whole batch of images (n, c, h, w) or signals (n, c, t) or (n, t), drawn from torch's
generator, which training seeds. `MAP(augment=Flip() + Crop(2))` uses two, one after the other. Without strength (a
probability, a reach, a size of 0) each leaves rows as they are. Where each pixel has a target of its own, as in a mask,
what moves the pixels moves their targets and weights with them; what comes in from outside has weight 0.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

from ..core.errors import DataError, SpecError
from ..core.spec import Spec, require
from .geometry import clipped, mirrored
from .rows import Inputs, Rows

__all__ = [
    "Augment",
    "Binarise",
    "Compose",
    "Crop",
    "Cutout",
    "Elastic",
    "Flip",
    "Jitter",
    "Mixup",
    "QuarterTurn",
    "Rotate",
    "Shift",
]

Triple = tuple[Any, Tensor, Tensor | None]
KEPT = 0.5
"""Fraction of a box that must be left in a window for it to be a box there."""


class Augment(Spec, axis="augment"):
    """Changes a batch. One of your own needs `change`, which gives new x; a call does the same.

    >>> Flip(1.0)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1.]])
    >>> Flip() + Crop(3)
    Compose(parts=(Flip(), Crop(padding=3)))
    """

    moves: ClassVar[bool] = False
    """Whether it moves what is in an image, so that targets of single pixels have to move with them."""
    makes_rows: ClassVar[bool] = False
    """Whether the model is one of what it gives, and not of rows as they are: then held-out rows get it too, once."""

    def change(self, x: Any) -> Any:
        """New x of the same shape and dtype; the old one stays as it is."""
        raise NotImplementedError(f"{type(self).__name__} must change x")

    def batch(self, x: Any, y: Tensor, weight: Tensor | None, positions: tuple[int, ...] = ()) -> Triple:
        """What training asks for: x, targets y (n, *positions, …) and their weights (n, *positions), all changed."""
        if not self.moves or not positions or positions != tuple(x.shape[2:]):
            return self.change(x), y, weight
        channels = y.to(x).flatten(1 + len(positions)) if y.ndim > 1 + len(positions) else y.to(x).unsqueeze(-1)
        weights = x.new_ones(len(x), *positions) if weight is None else weight.to(x)
        x, beside = self.move(x, torch.cat([channels.movedim(-1, 1), weights.unsqueeze(1)], 1))
        return x, beside[:, :-1].movedim(1, -1).reshape(y.shape).to(y), beside[:, -1]

    def move(self, x: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
        """x and what is known of its pixels, (n, channels, *positions) both, moved alike; no value is blended."""
        together = self.change(torch.cat([x, beside], 1))
        return together[:, : x.shape[1]], together[:, x.shape[1] :]

    def with_boxes(self, x: Any, boxes: Tensor) -> tuple[Any, Tensor]:
        """Images changed, and the boxes (n, m, 4 or more) in them: xmin, ymin, xmax, ymax, and what is known of each.

        A box that leaves its image becomes NaN, as is what stands for none.
        """
        if self.moves:
            raise DataError(
                f"{self!r} moves X, and does not tell where boxes go; use Flip, QuarterTurn, Crop, Jitter or Cutout."
            )
        return self.change(x), boxes

    def on_held_out(self) -> Augment | None:
        """What changes held-out rows too; None if they stay as they are."""
        return self if self.makes_rows else None

    def __call__(self, x: Any = None, /, **changes: Any) -> Any:
        """`augment(x)` is x changed; `augment(probability=0.1)` is `replace`, as for every spec."""
        return self.replace(**changes) if x is None else self.change(x)

    def __add__(self, other: Augment) -> Compose:
        if not isinstance(other, Augment):
            return NotImplemented
        own, more = (augment.parts if isinstance(augment, Compose) else (augment,) for augment in (self, other))
        return Compose((*own, *more))


class Compose(Augment):
    """One after the other; `a + b` makes it.

    >>> Compose((Flip(1.0), Shift(0)))(torch.tensor([[1.0, 2.0]]))
    tensor([[2., 1.]])
    """

    parts: tuple[Augment, ...] = ()

    @classmethod
    def example(cls) -> Compose:
        """Two of them."""
        return cls((Flip(), Crop()))

    def validate(self) -> None:
        augments = isinstance(self.parts, tuple) and all(isinstance(part, Augment) for part in self.parts)
        require(augments, self, "parts", "a list of augmentations, such as (Flip(), Crop())")

    def change(self, x: Any) -> Any:
        for part in self.parts:
            x = part.change(x)
        return x

    def with_boxes(self, x: Any, boxes: Tensor) -> tuple[Any, Tensor]:
        for part in self.parts:
            x, boxes = part.with_boxes(x, boxes)
        return x, boxes

    def on_held_out(self) -> Augment | None:
        kept = tuple(part for part in self.parts if part.on_held_out() is not None)
        return Compose(kept) if kept else None

    def batch(self, x: Any, y: Tensor, weight: Tensor | None, positions: tuple[int, ...] = ()) -> Triple:
        for part in self.parts:
            x, y, weight = part.batch(x, y, weight, positions)
        return x, y, weight


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
        axes = _axes(self, x, images=self.direction == "vertical")
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
        for axis in _axes(self, x):
            size = x.shape[axis]
            if self.padding >= size:
                raise DataError(f"{self!r} needs more than {self.padding} positions; X has shape {tuple(x.shape)}.")
            index = _window(x, axis, self.padding)
            moved.append(index[:, :1])
            inside = (index >= 0) & (index < size)
            if self.fill == "reflect":
                index = torch.where(index < 0, -index, index)
                index = torch.where(index >= size, 2 * (size - 1) - index, index)
            taken = torch.take_along_dim(x, _aligned(index.clamp(0, size - 1), x, axis), axis)
            x = torch.where(_aligned(inside, x, axis), taken, 0) if self.fill == "zeros" else taken
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
        for axis in _axes(self, x):
            x = torch.take_along_dim(x, _aligned(_window(x, axis, self.reach) % x.shape[axis], x, axis), axis)
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
        _axes(self, x, images=True)
        return turned(_floats(self, x), self._angles(x)) if self.degrees else x

    def move(self, x: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
        _axes(self, x, images=True)
        if not self.degrees:
            return x, beside
        angles = self._angles(x)
        return turned(_floats(self, x), angles), turned(beside, angles, "nearest")

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
        _axes(self, x, images=True)
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
        _axes(self, x, images=True)
        return _sampled(_floats(self, x), self._places(x)) if self.reach else x

    def move(self, x: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
        _axes(self, x, images=True)
        if not self.reach:
            return x, beside
        places = self._places(x)
        return _sampled(_floats(self, x), places), _sampled(beside, places, "nearest")

    def _places(self, x: Tensor) -> Tensor:
        """Where each pixel comes from, (n, height, width, 2); both axes run from −1 to 1."""
        sizes = list(x.shape[2:])
        points = [max(2, -(-size // self.cell) + 1) for size in sizes]
        field = torch.randn(len(x), 2, *points, device=x.device, dtype=x.dtype) * self.reach
        smooth = interpolate(field, sizes, mode="bicubic", align_corners=True)
        along = smooth * 2 / smooth.new_tensor(sizes[::-1]).view(1, 2, 1, 1)
        still = affine_grid(torch.eye(2, 3).to(x).expand(len(x), 2, 3), list(x.shape), align_corners=False)
        return still + along.movedim(1, -1)


class Jitter(Augment):
    """Add Gaussian noise of this standard deviation to every number; rows of any kind.

    >>> Jitter(0.0)(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    scale: float = 0.1

    def validate(self) -> None:
        require(self.scale >= 0, self, "scale", "0 or more")

    def change(self, x: Inputs) -> Inputs:
        if isinstance(x, Rows):
            return x.map(self.change)  # type: ignore[arg-type]
        return x + self.scale * torch.randn_like(_floats(self, x))


class Binarise(Augment):
    """Every number p between 0 and 1 becomes 1 with probability p, else 0: grey pixels as draws of binary ones.

    >>> Binarise()(torch.tensor([[0.0, 1.0]]))
    tensor([[0., 1.]])
    """

    makes_rows: ClassVar[bool] = True

    def change(self, x: Any) -> Tensor:
        within = not isinstance(x, Rows) and bool((_floats(self, x).amin() >= 0) & (x.amax() <= 1))
        if not within:
            raise DataError(f"{self!r} needs numbers between 0 and 1, such as pixels divided by 255.")
        return (torch.rand_like(x) < x).to(x)


class Cutout(Augment):
    """Set a square (of a signal, a stretch) of this size to 0, with its centre at random; at the border it is cut.

    >>> int((Cutout(3)(torch.ones(1, 1, 9, 9)) == 0).sum()) in (4, 6, 9)
    True
    """

    size: int = 4

    def validate(self) -> None:
        require(self.size >= 0, self, "size", "0 or more positions")

    def change(self, x: Any) -> Tensor:
        hole = torch.ones((1,) * x.ndim, dtype=torch.bool, device=x.device)
        for axis in _axes(self, x):
            positions = torch.arange(x.shape[axis], device=x.device)
            first = torch.randint(x.shape[axis], (len(x), 1), device=x.device) - self.size // 2
            hole = hole & _aligned((positions >= first) & (positions < first + self.size), x, axis)
        return torch.where(hole, 0, x)


class Mixup(Augment):
    """Train between rows: x = λxᵢ + (1 − λ)xⱼ has the targets yᵢ with weight λ and yⱼ with weight 1 − λ.

    λ ~ Beta(alpha, alpha) for each row, j another row of the batch; works for targets of every kind. The batch comes
    twice, once with each target.

    >>> x, y, weight = Mixup(1.0).batch(torch.rand(4, 3), torch.arange(4), None)
    >>> x.shape, y.shape, float(weight.sum().round())
    (torch.Size([8, 3]), torch.Size([8]), 4.0)
    """

    alpha: float = 0.2

    def validate(self) -> None:
        require(0 <= self.alpha < torch.inf, self, "alpha", "0 or a positive number")

    def change(self, x: Any) -> Any:
        if self.alpha:
            raise SpecError("Mixup changes targets too; it works in training only: MAP(augment=Mixup()).")
        return x

    def batch(self, x: Any, y: Tensor, weight: Tensor | None, positions: tuple[int, ...] = ()) -> Triple:
        if not self.alpha:
            return x, y, weight
        if isinstance(x, Rows):
            raise DataError(f"{self!r} needs rows of one shape; X has {x.kind}s, of which none lies between two.")
        alpha = torch.full((len(x),), self.alpha, dtype=torch.float64)
        fraction = torch.distributions.Beta(alpha, alpha).sample().to(_floats(self, x))
        other = torch.randperm(len(x)).to(x.device)
        along = fraction.view(-1, *(1,) * (x.ndim - 1))
        mixed = along * x + (1 - along) * x[other]
        weights = x.new_ones(len(x), *positions) if weight is None else weight
        own = fraction.view(-1, *(1,) * (weights.ndim - 1))
        mixed, both = torch.cat([mixed, mixed]), torch.cat([own * weights, (1 - own) * weights[other]])
        return mixed, torch.cat([y, y[other]]), both


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


def _axes(augment: Augment, x: Any, *, images: bool = False) -> tuple[int, ...]:
    """The axes that an image or a signal extends along."""
    wanted = "images (n, c, h, w)" + ("" if images else " or signals (n, c, t)")
    shape = f"{x.kind}s of any size" if isinstance(x, Rows) else f"shape {tuple(x.shape)}"
    if isinstance(x, Rows) or x.ndim > 4 or x.ndim < (4 if images else 2):
        raise DataError(f"{augment!r} needs {wanted}; X has {shape}.")
    return (1,) if x.ndim == 2 else tuple(range(2, x.ndim))


def _floats(augment: Augment, x: Tensor) -> Tensor:
    if not x.is_floating_point():
        raise DataError(f"{augment!r} needs real numbers; X has {x.dtype}: divide pixels by 255, for example.")
    return x


def _window(x: Tensor, axis: int, reach: int) -> Tensor:
    """Positions along an axis, moved by up to `reach` for each row: (n, size)."""
    moved = torch.randint(-reach, reach + 1, (len(x), 1), device=x.device)
    return torch.arange(x.shape[axis], device=x.device) + moved


def _aligned(table: Tensor, x: Tensor, axis: int) -> Tensor:
    """A table (n, size) that stands along the rows and this axis of x."""
    return table.view(len(x), *(table.shape[1] if i == axis else 1 for i in range(1, x.ndim)))
