"""Images with boxes and labels at the door: lists of any lengths become one tensor, or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from ...core.errors import DataError
from ...core.validation import as_rows
from ..labels import is_text, missing_among, shown

__all__ = ["OBJECT", "as_objects", "classes_among", "read_boxes", "read_images", "read_labels"]

OBJECT = "object"
"""The class of all boxes where none are given."""
CHANNELS = (1, 3, 4)
FORMS = "Detector takes images (n, channels, height, width), or grey ones (n, height, width)"
NAMED = type("Detector", (BaseEstimator,), {})
"""What scikit-learn's messages about X name."""


def read_images(X: Any, channels: int | None = None) -> Tensor:
    """Images as a tensor (n, c, h, w) of their own dtype; with `channels`, as many as there were in `fit`."""
    if isinstance(X, list | tuple) and len({np.shape(image) for image in X}) > 1:
        first, other = list(dict.fromkeys(np.shape(image) for image in X))[:2]
        raise DataError(f"X has images of different sizes, {first} and {other}; resize them, and their boxes, first.")
    x = as_rows(NAMED(), X, reset=True)
    if x.ndim == 3:
        x = x.unsqueeze(1)
    if x.ndim != 4:
        raise DataError(f"X has shape {tuple(x.shape)}; {FORMS}.")
    if 0 in x.shape:
        raise DataError(f"X has images of {x.shape[2]} × {x.shape[3]} pixels, in which there is nothing to see.")
    if x.shape[-1] in CHANNELS and x.shape[1] not in CHANNELS:
        shape = tuple(x.shape)
        raise DataError(f"X has shape {shape}, with channels last; {FORMS}: give X.transpose(0, 3, 1, 2).")
    if channels is not None and x.shape[1] != channels:
        kinds = {1: "grey images", 3: "images in colour"}
        now, fitted = (kinds.get(count, f"images of {count} channels") for count in (x.shape[1], channels))
        raise DataError(f"X has {now}; the model was fitted on {fitted}, (n, {channels}, height, width).")
    return x


def read_boxes(boxes: Any, x: Tensor, name: str = "boxes") -> list[np.ndarray]:
    """Boxes of each image as arrays (k, 4), each inside its image and with an area."""
    if isinstance(boxes, np.ndarray | Tensor) and boxes.ndim == 2:
        raise DataError(f"{name} has shape {tuple(boxes.shape)}; it must be a list of arrays (k, 4), one per image.")
    if boxes is None or not hasattr(boxes, "__len__"):
        raise DataError(f"{name} must be a list with an array (k, 4) of xmin, ymin, xmax, ymax for each image.")
    if len(boxes) != len(x):
        raise DataError(f"{name} has {len(boxes)} entries, but X has {len(x)} images; each needs an array (k, 4).")
    return [_boxes_of(own, f"{name}[{i}]", *x.shape[-2:]) for i, own in enumerate(boxes)]


def _boxes_of(boxes: Any, name: str, height: int, width: int) -> np.ndarray:
    try:
        values = np.asarray(boxes.detach().cpu() if isinstance(boxes, Tensor) else boxes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not an array of numbers (k, 4): {error}.") from error
    if values.size == 0:
        return np.empty((0, 4))
    if values.ndim != 2 or values.shape[1] != 4:
        raise DataError(f"{name} has shape {values.shape}; boxes are (k, 4): xmin, ymin, xmax, ymax in pixels.")
    if not np.isfinite(values).all():
        raise DataError(f"{name} has a box with NaN or infinity: {_shown(values[~np.isfinite(values).all(1)][0])}.")
    sizes = values[:, 2:] - values[:, :2]
    flat = (sizes <= 0).any(1)
    if flat.any():
        box = values[flat.argmax()]
        hint = "xmax must be above xmin and ymax above ymin"
        if (sizes[flat.argmax()] < 0).any():
            hint += "; boxes of the form (x, y, width, height) become these by adding the first two to the last two"
        raise DataError(f"{name} has a box of no area, {_shown(box)}; {hint}.")
    outside = (values < 0).any(1) | (values[:, 2:] > [width, height]).any(1)
    if outside.any():
        box = values[outside.argmax()]
        raise DataError(
            f"{name} has a box outside the image, {_shown(box)}, where that has {width} × {height} pixels "
            "(width × height); clip it, or give boxes in the pixels of X."
        )
    return values


def _shown(box: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:g}" for value in box) + ")"


def read_labels(labels: Any, boxes: list[np.ndarray]) -> list[np.ndarray]:
    """The label of each box, image by image; one class for all where none are given."""
    if labels is None:
        return [np.full(len(own), OBJECT) for own in boxes]
    if not hasattr(labels, "__len__") or len(labels) != len(boxes):
        count = len(labels) if hasattr(labels, "__len__") else "no"
        raise DataError(f"labels has {count} entries, but there are {len(boxes)} images; each needs its labels.")
    read = []
    for i, (own, there) in enumerate(zip(labels, boxes, strict=True)):
        if own is None:
            raise DataError(f"labels[{i}] is None; give a list with a label for each of the {len(there)} boxes there.")
        values = np.asarray(own.detach().cpu() if isinstance(own, Tensor) else own)
        if values.ndim != 1 or len(values) != len(there):
            raise DataError(f"labels[{i}] has shape {values.shape}, but image {i} has {len(there)} boxes.")
        missing = missing_among(values)
        if missing.any():
            box, none = int(missing.argmax()), values[missing][0]
            raise DataError(
                f"labels[{i}] has {none} for box {box}; each box needs a label, which is text or an integer."
            )
        read.append(values)
    return read


def classes_among(labels: list[np.ndarray]) -> np.ndarray:
    """The different labels, in order."""
    filled = [own for own in labels if len(own)]
    if not filled:
        raise DataError("boxes has no box at all, so that there is nothing to learn to detect.")
    texts = {is_text(own) for own in filled}
    if len(texts) > 1:
        raise DataError("labels mixes text and numbers; make them all text or all numbers.")
    joined = np.concatenate(filled)
    if joined.dtype.kind not in "iubU":
        raise DataError(f"labels has {joined.dtype} labels ({shown(joined[:1])}); labels are text or integers.")
    return np.unique(joined)


def as_objects(boxes: list[np.ndarray], labels: list[np.ndarray], classes: np.ndarray) -> Tensor:
    """(n, m, 5): the boxes of each image, in order of their numbers, with that of their class; NaN behind the last."""
    most = max(1, *(len(own) for own in boxes))
    objects = np.full((len(boxes), most, 5), np.nan)
    for i, (own, words) in enumerate(zip(boxes, labels, strict=True)):
        if not len(own):
            continue
        numbers = _numbers(words, classes, i)
        rows = np.column_stack([own, numbers])
        objects[i, : len(rows)] = rows[np.lexsort(rows.T[::-1])]
    return torch.from_numpy(objects)


def _numbers(labels: np.ndarray, classes: np.ndarray, image: int) -> np.ndarray:
    if is_text(labels) == is_text(classes):
        place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        unknown = classes[place] != labels
    else:  # "1" is not 1
        place, unknown = np.zeros(len(labels), int), np.ones(len(labels), bool)
    if unknown.any():
        strange = shown(labels[unknown][:1])
        raise DataError(f"labels[{image}] has the class {strange}, which was not seen in fit; known: {shown(classes)}.")
    return place
