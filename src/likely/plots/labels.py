"""Words beside what they name, where no points are: each label goes to the nearest free place around its anchor.

place = argmin over places p around the anchor of   points under p + lines under p + ‖p − anchor‖
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Label", "place_labels"]

ANGLES = 24
FAR = 15.0
"""Points of the page from which on a thin line leads from the label to its anchor."""
RADII = (4.0, 9.0, 16.0, 25.0, 36.0, 50.0, 70.0, 95.0, 125.0, 160.0)


class Label(NamedTuple):
    """Words, the places (m, 2) in data coordinates that they may stand at, best first, and the ways out of them."""

    text: str
    anchors: np.ndarray
    directions: np.ndarray
    colour: str


class _Page(NamedTuple):
    """What is drawn already, in pixels: points (n, 2), points along lines (m, 2), labels and axes as x₀ y₀ x₁ y₁."""

    points: np.ndarray
    lines: np.ndarray
    boxes: list[np.ndarray]
    frame: np.ndarray


def place_labels(ax: Axes, labels: Sequence[Label], points: Any, lines: Any = ()) -> None:
    """Write each label on a white box where it covers no point, no line and no other label, as near as that can be.

    `points` (n, 2) and `lines` (m, 2), a row of points along them, are in data coordinates. Call it last: what comes
    later may change the scale of the axes.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> place_labels(ax, [Label("here", np.array([[0.5, 0.5]]), np.array([[0, 1]]), "black")], [[0.5, 0.55]])
    >>> [text.get_text() for text in ax.texts]
    ['here']
    """
    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()  # so that pixels are those of the final layout
    renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
    pixel = figure.dpi / 72
    frame = np.asarray(ax.get_window_extent().extents)
    page = _Page(_pixels(ax, points), _pixels(ax, lines), [], frame)
    for label in labels:
        text = ax.annotate(
            label.text,
            (0, 0),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            color=label.colour,
            fontsize=8.5,
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
            arrowprops={"arrowstyle": "-", "color": label.colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2},
            annotation_clip=False,
            zorder=5,
        )
        extent = text.get_window_extent(renderer)
        size = np.array([extent.width, extent.height]) + 7 * pixel
        number, shift, box = _nearest(page, _pixels(ax, label.anchors), label.directions, size, pixel)
        text.xy = (float(label.anchors[number][0]), float(label.anchors[number][1]))
        text.set_position(tuple(shift / pixel))
        gap = np.maximum(np.abs(shift) - size / 2, 0)
        if text.arrow_patch is not None and np.linalg.norm(gap) < FAR * pixel:
            text.arrow_patch.set_visible(False)
        page.boxes.append(box)


def _pixels(ax: Axes, places: Any) -> np.ndarray:
    array = np.asarray(places, dtype=float).reshape(-1, 2)
    return ax.transData.transform(array) if len(array) else array


def _nearest(
    page: _Page, anchors: np.ndarray, directions: np.ndarray, size: np.ndarray, pixel: float
) -> tuple[int, np.ndarray, np.ndarray]:
    """The number of the anchor, the shift of the label's centre from it, and the box that the label then fills."""
    best: tuple[float, int, np.ndarray, np.ndarray] | None = None
    for number, (anchor, direction) in enumerate(zip(anchors, directions, strict=True)):
        first = float(np.arctan2(direction[1], direction[0]))
        for radius in RADII:
            for turn in np.linspace(0, 2 * np.pi, ANGLES, endpoint=False):
                unit = np.array([np.cos(first + turn), np.sin(first + turn)])
                shift = unit * (radius * pixel + size / 2)  # the near edge is `radius` away
                box = np.concatenate([anchor + shift - size / 2, anchor + shift + size / 2])
                cost = _covered(page, box) + 0.06 * radius + 0.4 * (1 - np.cos(turn)) + 0.05 * number
                if best is None or cost < best[0]:
                    best = float(cost), number, shift, box
    assert best is not None
    return best[1:]


def _covered(page: _Page, box: np.ndarray) -> float:
    """How bad a box is: points and lines below it, labels that it meets, and what of it lies outside the axes."""
    under = float(_inside(page.points, box).sum()) + float(_inside(page.lines, box).any())
    meets = sum(bool((box[:2] < other[2:]).all() and (other[:2] < box[2:]).all()) for other in page.boxes)
    outside = bool((box[:2] < page.frame[:2]).any() or (box[2:] > page.frame[2:]).any())
    return 3.0 * under + 30.0 * meets + 30.0 * outside


def _inside(places: np.ndarray, box: np.ndarray) -> np.ndarray:
    return np.asarray(((places > box[:2]) & (places < box[2:])).all(1))
