"""What changes a batch, and one change after the other."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.spec import Spec, require
from ..rows import Rows

__all__ = ["Augment", "Compose", "Triple", "aligned", "axes_of", "floats"]

Triple = tuple[Any, Tensor, Tensor | None]
"""x, targets and weights."""


class Augment(Spec, axis="augment"):
    """Changes a batch. One of your own needs `change`, which gives new x; a call does the same.

    >>> from likely.data.augment import Crop, Flip
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

    >>> from likely.data.augment import Flip, Shift
    >>> Compose((Flip(1.0), Shift(0)))(torch.tensor([[1.0, 2.0]]))
    tensor([[2., 1.]])
    """

    parts: tuple[Augment, ...] = ()

    @classmethod
    def example(cls) -> Compose:
        """Two of them."""
        from .moving import Crop, Flip

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


def axes_of(augment: Augment, x: Any, *, images: bool = False) -> tuple[int, ...]:
    """The axes that an image or a signal extends along."""
    wanted = "images (n, c, h, w)" + ("" if images else " or signals (n, c, t)")
    shape = f"{x.kind}s of any size" if isinstance(x, Rows) else f"shape {tuple(x.shape)}"
    if isinstance(x, Rows) or x.ndim > 4 or x.ndim < (4 if images else 2):
        raise DataError(f"{augment!r} needs {wanted}; X has {shape}.")
    return (1,) if x.ndim == 2 else tuple(range(2, x.ndim))


def floats(augment: Augment, x: Tensor) -> Tensor:
    """x, whose values can be changed by a little."""
    if not x.is_floating_point():
        raise DataError(f"{augment!r} needs real numbers; X has {x.dtype}: divide pixels by 255, for example.")
    return x


def aligned(table: Tensor, x: Tensor, axis: int) -> Tensor:
    """A table (n, size) that stands along the rows and this axis of x."""
    return table.view(len(x), *(table.shape[1] if i == axis else 1 for i in range(1, x.ndim)))
