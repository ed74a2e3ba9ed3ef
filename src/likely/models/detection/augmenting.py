"""Boxes that move with their images, wherever in an inference rows are augmented."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...core.errors import DataError
from ...data.augment import Augment
from ...data.augment.base import Triple
from ...inference import Inference

__all__ = ["MovingBoxes", "moving_boxes"]


class MovingBoxes:
    """An augmentation of images whose targets are boxes (n, m, 5), with the number of a class behind each."""

    def __init__(self, augment: Augment) -> None:
        self.augment = augment

    def __repr__(self) -> str:
        return repr(self.augment)

    def batch(self, x: Any, y: Tensor, weight: Tensor | None, positions: tuple[int, ...] = ()) -> Triple:
        """Images and boxes, both moved."""
        return *self.augment.with_boxes(x, y), weight


def moving_boxes(inference: Inference) -> Inference:
    """The same inference; where it, or the one inside it, augments rows, boxes are moved too.

    >>> from likely.data.augment import Flip
    >>> from likely.inference import MAP, Ensemble
    >>> moving_boxes(Ensemble(2, by=MAP(augment=Flip()))).by.augment
    Flip()
    """
    augment: Any = getattr(inference, "augment", None)
    if isinstance(augment, Augment):
        return inference.replace(augment=MovingBoxes(augment))
    if augment is not None and hasattr(augment, "batch") and not isinstance(augment, MovingBoxes):
        raise DataError(f"augment={augment!r} changes targets, and those are boxes here; use likely.data.augment.")
    inner = getattr(inference, "by", None)
    return inference.replace(by=moving_boxes(inner)) if isinstance(inner, Inference) else inference
