"""A picture of a segmentation: an image, the class of each pixel over it, and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..models.segmentation import Segmented
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["segmentation"]

COLOURS = (MAIN, ACCENT, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", MUTED)
STRENGTH = 0.55
"""How much of the colour of a class lies over a pixel that is surely of it."""


def segmentation(
    image: Any, answer: Segmented, *, index: int = 0, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """An image (channels, height, width) with the most probable class of each pixel: the paler, the less sure.

    `index` is the place of the image among those that were segmented. The commonest class has no colour of its own.

    >>> answer = Segmented((np.array([[[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]]),), np.array(["ground", "cell"]))
    >>> segmentation(np.zeros((1, 1, 3)), answer).get_title(loc="left")
    '33.3% cell'
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    pixels = np.asarray(image, dtype=float)
    if not isinstance(answer, Segmented) or not 0 <= index < len(answer):
        raise DataError("segmentation draws an image and what likely.models.segmentation.segment says of it.")
    probabilities = answer.probabilities[index]
    if pixels.ndim != 3 or pixels.shape[1:] != probabilities.shape[:2]:
        raise DataError(f"image has shape {pixels.shape}, and the answer is of {probabilities.shape[:2]} pixels.")
    place = probabilities.argmax(-1)
    shares = np.bincount(place.ravel(), minlength=len(answer.classes)) / place.size
    order = np.argsort(-shares, kind="stable")
    height, width = place.shape
    ax = axes_of(ax, 6.4, 6.4 * height / width + 0.7)
    low, high = pixels.min(), pixels.max()
    grey = (pixels - low) / max(high - low, 1e-12)
    ax.imshow(grey.mean(0) if len(grey) != 3 else np.moveaxis(grey, 0, -1), cmap="gray", vmin=0, vmax=1)
    over = np.zeros((height, width, 4))
    least = 1 / len(answer.classes)
    for rank, label in enumerate(order[1:]):
        own = place == label
        over[own, :3] = to_rgb(COLOURS[rank % len(COLOURS)])
        over[own, 3] = STRENGTH * (0.4 + 0.6 * (probabilities[..., label][own] - least) / (1 - least))
    ax.imshow(over, interpolation="nearest")
    rest = [label for label in order[1:] if shares[label] > 0]
    names = [str(label) if answer.classes.dtype.kind in "UO" else f"class {label}" for label in answer.classes]
    finding = ", ".join(f"{percent(round(float(shares[k]), 3))} {names[k]}" for k in rest[:3])
    note = f"the rest is {names[order[0]]}; the paler, the less sure"
    finish(ax, title=titled(title, finding or f"all of it is {names[order[0]]}"), note=note, x="", y="", grid=None)
    ax.set_xticks([])
    ax.set_yticks([])
    if len(rest) > 1:
        handles = [
            Patch(color=COLOURS[rank % len(COLOURS)], label=str(answer.classes[label]))
            for rank, label in enumerate(order[1:])
            if shares[label] > 0
        ]
        ax.legend(handles=handles, loc="lower right", fontsize=8.5, labelcolor=INK, frameon=True, framealpha=0.85)
    return ax
