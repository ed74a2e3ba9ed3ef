"""Segmentation of images of any size: the class of each pixel, tile by tile where an image is large.

    p(p) = Σ over tiles t of  w_t(p) p_t(p),     Σ w_t(p) = 1

A model is `Classifier(network=UNet())`, fitted on images and masks. Tiles overlap; where two do, the weight goes over
from one to the other along a line, and the outermost pixels of a tile, which see its edge, have none. What is held at
once is one tile on its way through the network, however large the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError, SpecError
from ..core.spec import is_integer
from .supervised.classifier import Classifier
from .supervised.sizes import ANY, any_size, check_channels
from .supervised.texts import network_of

__all__ = ["Segmented", "segment"]

EDGE = 4
"""An overlap has this many parts: the first and the last are left to the tile that has them inside."""
LEAST = 64
"""The side of a tile, unless the images of the fit were larger."""


@dataclass(frozen=True)
class Segmented:
    """What a model says of the pixels of images, one entry per image, each of its own size."""

    probabilities: tuple[np.ndarray, ...]
    """Of each class at each pixel: (height, width, classes)."""
    classes: np.ndarray

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def labels(self) -> tuple[np.ndarray, ...]:
        """The most probable class of each pixel, (height, width)."""
        return tuple(self.classes[image.argmax(-1)] for image in self.probabilities)

    def fraction(self, label: Any) -> np.ndarray:
        """The expected fraction of each image that a class covers."""
        if label not in self.classes.tolist():
            raise DataError(f"label={label!r} is not one of the classes {', '.join(map(str, self.classes[:10]))}.")
        place = self.classes.tolist().index(label)
        return np.array([image[..., place].mean() for image in self.probabilities])


def segment(
    model: Any, images: Any, *, tile: int | None = None, overlap: int | None = None, flips: bool = False
) -> Segmented:
    """The probability of each class at each pixel of images (n, channels, height, width), or of a list of them.

    An image whose sides are above `tile` pixels (by default those of the fit, 64 or more) is cut into tiles that share
    `overlap` pixels, a quarter of a tile unless given. With `flips` the answer is the mean over all eight ways to turn
    and mirror a tile, turned back: a little better where up and down mean nothing, and eight times as long.

    >>> from likely.networks import UNet
    >>> images = np.random.default_rng(0).normal(size=(4, 1, 16, 16)).astype("float32")
    >>> model = Classifier(network=UNet((2, 4)), inference="map(epochs=2)", random_state=0)
    >>> model = model.fit(images, (images[:, 0] > 0).astype(int))
    >>> segment(model, [np.zeros((1, 90, 70)), np.zeros((1, 16, 16))]).labels[0].shape
    (90, 70)
    """
    _check_model(model)
    given = list(images)
    if not given:
        raise DataError("images is empty; give at least one image (channels, height, width).")
    multiple = int(getattr(network_of(model), "multiple", 1))
    for name, pixels, least in (("tile", tile, 1), ("overlap", overlap, 0)):
        if pixels is not None and not is_integer(pixels, least):
            raise SpecError(f"{name}={pixels!r} must be an integer, {least} or more: a number of pixels.")
    side = max(LEAST, *model.in_shape_[1:]) if tile is None else tile
    shared = -(-side // (EDGE * multiple)) * multiple if overlap is None else overlap
    fits = 2 * shared <= side
    step = (side - shared) // multiple * multiple if fits else 0  # tiles are halved where the whole image would be
    if 2 * step < side:
        raise SpecError(
            f"tile={side} and overlap={shared} do not fit: an overlap is half a tile or less, and for this network "
            f"both are multiples of {multiple}."
        )
    answers = (_blended(model, _image(model, image), side, step, side - step, flips) for image in given)
    return Segmented(tuple(answers), model.classes_)


def _check_model(model: Any) -> None:
    if not isinstance(model, Classifier) or not hasattr(model, "posterior_"):
        raise SpecError(f"model is a {type(model).__name__}; segment takes a fitted Classifier(network=UNet()).")
    if len(model.in_shape_) != 3 or model.positions_ != model.in_shape_[1:]:
        raise SpecError(
            "The model has no label for each pixel; fit Classifier(network=UNet()) on images (n, c, h, w) and masks "
            "(n, h, w)."
        )


def _image(model: Any, image: Any) -> np.ndarray:
    pixels = np.asarray(image.detach().cpu() if isinstance(image, Tensor) else image, dtype=np.float32)
    if pixels.ndim != 3:
        raise DataError(f"images has an entry of shape {pixels.shape}; an image is (channels, height, width).")
    check_channels(model, pixels[None])
    if pixels.shape[1:] != model.in_shape_[1:] and not any_size(model):
        raise DataError(
            f"images has one of {pixels.shape[1:]} pixels; the model was fitted on {model.in_shape_[1:]} and its "
            f"network answers for that size alone; {ANY}."
        )
    return pixels


def _blended(model: Any, image: np.ndarray, side: int, step: int, shared: int, flips: bool) -> np.ndarray:
    """The probabilities of one image, (height, width, classes)."""
    sizes = image.shape[1:]
    if max(sizes) <= side:
        return _asked(model, image, flips)
    total: np.ndarray | None = None
    spans = [list(_spans(size, side, step, shared)) for size in sizes]
    for rows, down in spans[0]:
        for columns, across in spans[1]:
            part = _asked(model, image[:, rows, columns], flips)
            if total is None:
                total = np.zeros((*sizes, part.shape[-1]), part.dtype)
            total[rows, columns] += part * (down[:, None] * across)[..., None].astype(part.dtype)
    assert total is not None
    return total


def _spans(size: int, side: int, step: int, shared: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Where tiles lie along an axis, and how much each of their pixels counts there."""
    starts = list(range(0, max(1, size - shared), step)) if size > side else [0]
    margin = shared // EDGE
    rise = np.clip((np.arange(shared) + 0.5 - margin) / max(1, shared - 2 * margin), 0, 1)
    for index, start in enumerate(starts):
        stop = min(start + side, size) if index + 1 < len(starts) else size
        weight = np.ones(stop - start)
        if index and shared:
            weight[:shared] = rise[: stop - start]
        if index + 1 < len(starts) and shared:
            weight[-shared:] = 1 - rise
        yield slice(start, stop), weight


def _asked(model: Any, image: np.ndarray, flips: bool) -> np.ndarray:
    if not flips:
        return model.predict_proba(image[None])[0]
    ways: Sequence[tuple[int, bool]] = [(quarter, mirrored) for quarter in range(4) for mirrored in (False, True)]
    total: Any = 0.0
    x = torch.from_numpy(np.ascontiguousarray(image))
    for quarter, mirrored in ways:
        turned = torch.rot90(x.flip(-1) if mirrored else x, quarter, (1, 2))
        back = np.rot90(model.predict_proba(turned.unsqueeze(0).contiguous())[0], -quarter, (0, 1))
        total = total + (back[:, ::-1] if mirrored else back)
    return total / len(ways)
