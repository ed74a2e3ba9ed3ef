"""What a detector sees in an image, and its precision at each recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..core.errors import DataError
from ..evaluate.detections import RECALLS, AveragePrecision
from .style import INK, MUTED, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["detections", "precision_recall"]

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of classes: told apart by colour-blind readers."""
CROWD = 8
"""Boxes above which the commonest class is not written beside each of its own."""


def detections(
    image: Any,
    objects: Any,
    *,
    truth: Any = None,
    bands: float = 1.0,
    classes: Iterable[Any] | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The boxes that `Detector.detect` gives for an image: class, probability, and how sure every edge is.

    An edge is a band of `bands` standard deviations to both sides of it, faint where the object is improbable. `truth`
    are the true boxes (k, 4), drawn as dashed lines; `classes` are all that there are, so that each has the same colour
    in every picture. The image is (height, width), (channels, height, width) or (height, width, channels), in any
    units.

    >>> from likely.models.detection.detections import Detections
    >>> cells = Detections(np.array([[2.0, 2, 8, 9]]), np.array(["cell"]), np.array([0.9]), np.ones((1, 4)))
    >>> detections(np.zeros((12, 16)), cells).get_title(loc="left")
    '1 cell'
    """
    from matplotlib.patches import Rectangle

    pixels = _pixels(image)
    height, width = pixels.shape[:2]
    ax = axes_of(ax, 6.4, 6.4 * height / width + 0.7)
    ax.imshow(pixels, cmap="gray", extent=(0, width, height, 0), interpolation="nearest")
    for box in np.asarray([] if truth is None else truth, dtype=float).reshape(-1, 4):
        x, y = box[0], box[1]
        ax.add_patch(Rectangle((x, y), box[2] - x, box[3] - y, fill=False, ls=(0, (3, 2)), lw=0.9, color="white"))
    words = [str(label) for label in objects.labels]
    counts, names = Counter(words), () if classes is None else classes
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(sorted(set(map(str, names)) | set(counts)))}
    common = max(counts, key=lambda name: counts[name], default="")
    quiet = common if len(words) > CROWD else ""
    for box, word, probability, scale in zip(objects.boxes, words, objects.probabilities, objects.scales, strict=True):
        strength = 0.25 + 0.75 * float(probability)
        _draw(ax, box, bands * scale, colours[word], strength)
        text = f"{probability:.2f}" if word == quiet else f"{word} {probability:.2f}"
        ax.text(
            *(box[0], max(box[1], 0.045 * height)),
            text,
            fontsize=6.5,
            color="white",
            va="bottom",
            clip_on=True,
            bbox={"facecolor": colours[word], "alpha": strength, "edgecolor": "none", "pad": 0.8},
        )
    finding = ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "nothing is detected"
    size = "the standard deviation" if bands == 1 else f"{bands:g} standard deviations"
    note = f"bands: ± {size} of each edge" if len(objects) and bands else ""
    note += f"; numbers alone are {quiet}" if note and quiet else ""
    finish(ax, title=titled(title, finding), note=note, x="", y="", grid=None)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    return ax


def precision_recall(
    measured: AveragePrecision, *, overlap: float = 0.5, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """Precision at each recall, a line for each class, from `evaluate.average_precision`; AP is the area below it.

    >>> from likely.evaluate import average_precision
    >>> perfect = average_precision([([[0, 0, 4, 4]], ["cell"], [0.9])], [[[0, 0, 4, 4]]], [["cell"]])
    >>> precision_recall(perfect).get_title(loc="left")
    'mAP 1.000 at an IoU of 0.5 or more'
    """
    if not isinstance(measured, AveragePrecision):
        raise DataError(f"measured is a {type(measured).__name__}; give what evaluate.average_precision returns.")
    value = measured.at(overlap)
    row = int(np.flatnonzero(np.isclose(measured.overlaps, overlap))[0])
    ax = axes_of(ax)
    ax.set_ylim(0, 1.03)
    ends = {}
    for k, label in enumerate(measured.classes):
        precision = measured.precisions[row, k]
        if np.isnan(precision).all():
            continue
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(RECALLS, precision, drawstyle="steps-post", color=colour, lw=1.8)
        last = precision[precision > 0]
        ends[f"{label} {measured.by_class[row, k]:.3f}"] = (float(last[-1]) if len(last) else 0.0, colour)
    ax.set_xlim(0, 1.0)
    side_labels(ax, 1.0, ends)
    note = f"mean over IoU {measured.overlaps[0]:g} to {measured.overlaps[-1]:g}: {measured.value:.3f}"
    heading = titled(title, f"mAP {value:.3f} at an IoU of {overlap:g} or more")
    finish(ax, title=heading, note=note, x="recall: true boxes that are detected", y="precision")
    ax.tick_params(colors=MUTED)
    ax.title.set_color(INK)
    return ax


def _draw(ax: Axes, box: np.ndarray, reach: np.ndarray, colour: str, strength: float) -> None:
    """The box, and a band around each of its edges."""
    from matplotlib.patches import Rectangle

    left, top, right, bottom = box
    ax.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, lw=1.1, color=colour, alpha=strength))
    across = [(left - reach[0], top, 2 * reach[0]), (right - reach[2], top, 2 * reach[2])]
    down = [(left, top - reach[1], 2 * reach[1]), (left, bottom - reach[3], 2 * reach[3])]
    bands = [Rectangle((x, y), size, bottom - top) for x, y, size in across]
    bands += [Rectangle((x, y), right - left, size) for x, y, size in down]
    for band in bands:
        band.set(facecolor=colour, edgecolor="none", alpha=0.25 * strength)
        ax.add_patch(band)


def _pixels(image: Any) -> np.ndarray:
    """(height, width) or (height, width, 3), between 0 and 1."""
    pixels = image.detach().cpu().numpy() if isinstance(image, torch.Tensor) else np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3, 4) and pixels.shape[2] not in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)):
        raise DataError(f"image has shape {pixels.shape}; one image is (height, width) or (channels, height, width).")
    if pixels.dtype == np.uint8:
        return pixels[..., :3] / 255 if pixels.ndim == 3 else pixels / 255
    low, high = float(pixels.min()), float(pixels.max())
    inside = pixels.ndim == 3 and low >= 0 and high <= 1
    return pixels if inside else (pixels - low) / max(high - low, 1e-12)
