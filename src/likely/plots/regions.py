"""Pictures of linear regions: the map of a plane, and a network's answer along a line with its breakpoints."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..theory.linear_regions import LineRegions, PlaneRegions
from .mixtures import COLOURS
from .style import ACCENT, MAIN, MUTED, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["breakpoints", "regions"]

GOLDEN = 0.618034
"""Steps of this size round a circle never come close to where they were: neighbours get different tints."""


def regions(
    plane: PlaneRegions,
    *,
    level: float = 0.0,
    names: tuple[str, str] | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The map of a plane that `theory.regions_in_plane` found: each linear region has a tint of its own.

    A network with one output also has its level line η = `level`, bent where it goes from region to region: for a
    classifier of two classes, 0 is the border between them. `names` are those of the two coordinates.

    >>> import torch
    >>> from likely.networks import MLP
    >>> from likely.theory.linear_regions import regions_in_plane
    >>> _ = torch.manual_seed(0)
    >>> net = MLP((8,)).build((2,), 1)
    >>> regions(regions_in_plane(net, ((-100, 100), (-100, 100)))).get_title(loc="left")
    '37 linear regions'
    """
    if not isinstance(plane, PlaneRegions):
        raise DataError(f"regions draws what theory.regions_in_plane returns; found a {type(plane).__name__}.")
    import matplotlib as mpl
    from matplotlib.collections import LineCollection, PolyCollection

    (left, right), (bottom, top) = plane.window
    shape = (top - bottom) / (right - left)
    square = 0.2 < shape < 5
    ax = axes_of(ax, 5.6, min(1.0 + 4.6 * shape, 8.0) if square else 5.4)
    tint = mpl.colormaps["Blues"](0.04 + 0.42 * (plane.region * GOLDEN % 1.0))
    border = 0.7 if len(plane) < 1000 else 0.25
    ax.add_collection(
        PolyCollection(list(plane.polygons), facecolors=tint, edgecolors=tint, linewidths=0.3, label="regions")
    )
    ax.add_collection(LineCollection(_borders(plane), colors="white", linewidths=border, label="borders"))
    note = ""
    if plane.offsets.shape[1] == 1:
        pieces = _level_line(plane, level)
        ax.add_collection(LineCollection(pieces, colors=ACCENT, linewidths=1.8, capstyle="round", label="level"))
        note = f"orange: where the network is {level:g}" if pieces else f"the network is nowhere {level:g} here"
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_aspect("equal" if square else "auto")
    count = len(plane)
    finding = f"{count:,} linear region{'s' if count > 1 else ''}"
    first, second = names or (("x₀", "x₁") if len(plane.origin) == 2 else ("u", "v"))
    return finish(ax, title=titled(title, finding), note=note, x=first, y=second, grid=None)


def breakpoints(
    line: LineRegions, *, names: Any = None, label: str = "η", title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """A network's outputs along the line of `theory.regions_on_line`: straight between dots, bent at each of them.

    With one input the axis shows it; with more, the fraction of the way from start to stop. `names` are the outputs'.

    >>> import torch
    >>> from likely.networks import MLP
    >>> from likely.theory.linear_regions import regions_on_line
    >>> _ = torch.manual_seed(0)
    >>> breakpoints(regions_on_line(MLP((8,)).build((1,), 1), -5.0, 5.0)).get_title(loc="left")
    '9 linear regions with 8 breakpoints'
    """
    if not isinstance(line, LineRegions):
        raise DataError(f"breakpoints draws what theory.regions_on_line returns; found a {type(line).__name__}.")
    outputs = line.slopes.shape[1]
    shown = [f"output {k}" for k in range(outputs)] if names is None else [str(name) for name in names]
    if len(shown) != outputs:
        raise DataError(f"names must be one for each of the {outputs} outputs; found {len(shown)}.")
    ax = axes_of(ax, 6.4, 4.0)
    knots = np.concatenate([[0.0], line.breakpoints, [1.0]])
    alone = len(line.start) == 1
    place = line.start[0] + knots * (line.stop[0] - line.start[0]) if alone else knots
    heights = line(knots)
    size = 4.0 if len(line) <= 60 else 2.2
    for k in range(outputs):
        colour = COLOURS[k % len(COLOURS)] if outputs > 1 else MAIN
        ax.plot(place, heights[:, k], color=colour, linewidth=1.6, label=shown[k])
        ax.plot(place[1:-1], heights[1:-1, k], "o", color=colour, markersize=size, markeredgewidth=0, label="bends")
    for t in place[1:-1]:
        ax.axvline(t, ymax=0.025, color=MUTED, linewidth=0.8)
    ax.margins(x=0.02)
    if outputs > 1:
        right = int(place.argmax())
        ends = {name: (float(heights[right, k]), COLOURS[k % len(COLOURS)]) for k, name in enumerate(shown)}
        side_labels(ax, float(place[right]), ends)
    count = len(line)
    bends = f" with {count - 1} breakpoint{'s' if count > 2 else ''}" if count > 1 else ""
    finding = f"{count:,} linear region{'s' if count > 1 else ''}{bends}"
    return finish(ax, title=titled(title, finding), x="x" if alone else "fraction of the way", y=label)


def _borders(plane: PlaneRegions) -> list[Any]:
    """Sides of polygons, without those that lie inside a region."""
    sides: dict[tuple[float, ...], tuple[Any, set[int]]] = {}
    size = max(high - low for low, high in plane.window)
    for polygon, region in zip(plane.polygons, plane.region.tolist(), strict=True):
        for a, b in pairwise([*polygon, polygon[0]]):
            ends = sorted([tuple((a / size).round(7)), tuple((b / size).round(7))])
            side = sides.setdefault((*ends[0], *ends[1]), ((a, b), set()))
            side[1].symmetric_difference_update({region})  # a side seen from one region twice lies inside it
    return [ends for ends, owners in sides.values() if owners]


def _level_line(plane: PlaneRegions, level: float) -> list[Any]:
    """Where η = level inside each polygon: straight pieces between two of its sides."""
    pieces = []
    for polygon, slope, offset in zip(plane.polygons, plane.slopes[:, 0], plane.offsets[:, 0], strict=True):
        heights = polygon @ slope + offset - level
        if heights.min() >= 0 or heights.max() <= 0:
            continue
        ends = [
            a + (b - a) * (s / (s - t))
            for (a, s), (b, t) in pairwise([*zip(polygon, heights, strict=True), (polygon[0], heights[0])])
            if (s > 0) != (t > 0)
        ]
        pieces.append(np.array(ends[:2]))
    return pieces
