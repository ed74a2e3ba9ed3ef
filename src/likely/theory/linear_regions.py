"""Linear regions of piecewise linear networks: where exactly they are in a line or plane, and how many there can be.

    Zaslavsky    m hyperplanes cut ℝⁿ into at most  Σ_{i≤n} (m choose i)  parts
    Montúfar     networks of widths n₁ … n_L on n inputs have at most  Π_l Σ_{i≤d_l} (n_l choose i)  regions, where
                 d_l = min(n, n₁ … n_l), and some have at least  Π_{l<L} ⌊n_l/n⌋ⁿ · Σ_{i≤n} (n_L choose i)

A region is a connected set on which the function is linear, as large as it can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..core.errors import DataError
from .bounds import check_whole, sauer
from .differentiate import module_of
from .piecewise_linear import Cells, read

__all__ = [
    "LineRegions",
    "PlaneRegions",
    "RegionBounds",
    "montufar",
    "regions_in_plane",
    "regions_on_line",
    "zaslavsky",
]

SAME = 1e-9
"""How far slopes may differ, relative to the largest, to count as the same."""


@dataclass(frozen=True)
class LineRegions:
    """Regions along x(t) = start + t (stop − start), 0 ≤ t ≤ 1: on region i, η = slopes[i] t + offsets[i]."""

    start: np.ndarray
    stop: np.ndarray
    breakpoints: np.ndarray
    """The t at which one region ends and the next begins, in order: (regions − 1,)."""
    slopes: np.ndarray
    """dη/dt in each region: (regions, outputs)."""
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.slopes)

    @property
    def points(self) -> np.ndarray:
        """The breakpoints as points x: (regions − 1, inputs)."""
        return self.start + self.breakpoints[:, None] * (self.stop - self.start)

    def __call__(self, t: Any) -> np.ndarray:
        """η at these t: (…, outputs)."""
        where = np.asarray(t, dtype=float)
        region = np.searchsorted(self.breakpoints, where)
        return self.slopes[region] * where[..., None] + self.offsets[region]


@dataclass(frozen=True)
class PlaneRegions:
    """Regions of the plane x(u, v) = origin + u·axes[0] + v·axes[1] inside a window, as convex polygons.

    A polygon is where every unit stays on one side of its kink; a region may be several of them side by side.
    """

    origin: np.ndarray
    axes: np.ndarray
    window: tuple[tuple[float, float], tuple[float, float]]
    polygons: tuple[np.ndarray, ...]
    """Corners (u, v) of each, in order around it."""
    slopes: np.ndarray
    """∂η/∂(u, v) on each polygon: (polygons, outputs, 2)."""
    offsets: np.ndarray
    """η = slopes (u, v) + offsets: (polygons, outputs)."""
    region: np.ndarray
    """The number of the region that each polygon belongs to."""

    def __len__(self) -> int:
        return int(self.region.max()) + 1

    def points(self, coordinates: Any) -> np.ndarray:
        """Points x at (u, v): (…, inputs)."""
        return self.origin + np.asarray(coordinates, dtype=float) @ self.axes


class RegionBounds(NamedTuple):
    """Some network has `least` regions or more; none has more than `most`."""

    least: int
    most: int


def regions_on_line(network: Any, start: Any, stop: Any) -> LineRegions:
    """The linear regions of a network on the segment from `start` to `stop`, with exact breakpoints.

    `network` is a module (as `MLP(…).build` gives) or a fitted `Classifier` or `Regressor`, of linear layers, ReLUs,
    leaky ReLUs and skips.

    >>> import torch
    >>> from likely.networks import MLP
    >>> _ = torch.manual_seed(0)
    >>> line = regions_on_line(MLP((8,)).build((1,), 1), [-5.0], [5.0])
    >>> len(line), len(line.breakpoints)                                 # 8 units have 8 kinks
    (9, 8)
    """
    first, last = (np.atleast_1d(np.asarray(end, dtype=float)) for end in (start, stop))
    if first.ndim != 1 or first.shape != last.shape or not np.isfinite([first, last]).all() or (first == last).all():
        raise DataError(f"start and stop must be two different finite points; found {start!r} and {stop!r}.")
    cells = Cells(np.array([[0.0], [1.0]]), np.column_stack([last - first, first]))
    read(module_of(network), cells)
    order = np.argsort([own.min() for own in cells.corners])
    maps = cells.stack[-1][order]
    ends = np.array([cells.corners[i].max() for i in order])
    same = _close(maps[1:], maps[:-1], maps)
    kept = np.append(~same, True)  # the last piece of each region
    return LineRegions(first, last, ends[kept][:-1], maps[kept][..., 0], maps[kept][..., 1])


def regions_in_plane(
    network: Any,
    window: tuple[tuple[float, float], tuple[float, float]] = ((-1.0, 1.0), (-1.0, 1.0)),
    *,
    origin: Any = None,
    axes: Any = None,
) -> PlaneRegions:
    """The linear regions of a network in a plane, cut exactly: all u, v with `window` = ((u₀, u₁), (v₀, v₁)).

    The plane is x = origin + u·axes[0] + v·axes[1]: that of both inputs if there are two, else `origin` (inputs,) and
    `axes` (2, inputs) say which.

    >>> import torch
    >>> from likely.networks import MLP
    >>> _ = torch.manual_seed(0)
    >>> net = MLP((8,)).build((2,), 1)
    >>> len(regions_in_plane(net, ((-100, 100), (-100, 100)))), zaslavsky(8, 2)
    (37, 37)
    """
    directions = np.eye(2) if axes is None else np.asarray(axes, dtype=float)
    base = np.zeros(directions.shape[-1]) if origin is None else np.asarray(origin, dtype=float)
    if directions.shape != (2, *base.shape) or base.ndim != 1 or np.linalg.matrix_rank(directions) < 2:
        raise DataError(
            f"origin (inputs,) and axes (2, inputs) must span a plane; found {base.shape}, {directions.shape}."
        )
    (left, right), (bottom, top) = window
    if not (left < right and bottom < top and np.isfinite([left, right, bottom, top]).all()):
        raise DataError(f"window={window!r} must be ((u₀, u₁), (v₀, v₁)) with u₀ < u₁ and v₀ < v₁.")
    corners = np.array([[left, bottom], [right, bottom], [right, top], [left, top]], dtype=float)
    cells = Cells(corners, np.column_stack([*directions, base]))
    read(module_of(network), cells)
    maps = cells.stack[-1]
    region = _merged(cells.corners, maps, cells.size)
    sides = ((float(left), float(right)), (float(bottom), float(top)))
    return PlaneRegions(base, directions, sides, tuple(cells.corners), maps[..., :2], maps[..., 2], region)


def zaslavsky(hyperplanes: int, dimension: int) -> int:
    """Σ_{i≤n} (m choose i): the parts into which m hyperplanes in general position cut ℝⁿ; others cut fewer.

    >>> zaslavsky(3, 2), zaslavsky(10, 1)
    (7, 11)
    """
    return sauer(hyperplanes, dimension)


def montufar(widths: tuple[int, ...], inputs: int) -> RegionBounds:
    """How many linear regions ReLU networks with these hidden widths can have.

    The lower bound is Montúfar's, by layers that fold their input onto itself; where a layer is narrower than the
    input, it is that of networks which look at fewer inputs.

    >>> montufar((4, 4), 1)
    RegionBounds(least=20, most=25)
    """
    wide = tuple(widths)
    for width in wide or (0,):
        check_whole(width, "widths", "the sizes of hidden layers")
    check_whole(inputs, "inputs", "a number of columns")
    seen = min((inputs, *wide[:-1]))
    least = math.prod((width // seen) ** seen for width in wide[:-1]) * zaslavsky(wide[-1], seen)
    most = math.prod(zaslavsky(width, min(inputs, *wide[: layer + 1])) for layer, width in enumerate(wide))
    return RegionBounds(least, most)


def _close(one: np.ndarray, other: np.ndarray, everything: np.ndarray) -> np.ndarray:
    """Which affine maps (…, outputs, d + 1) agree, by the standard of the largest slope and offset of each output."""
    scale = np.abs(everything).max(0) + np.finfo(float).tiny
    return (np.abs(one - other) <= SAME * scale).all((-1, -2))


def _merged(corners: list[np.ndarray], maps: np.ndarray, size: float) -> np.ndarray:
    """The region of each polygon: those with the same map that share a side belong together."""
    scale = np.abs(maps).max(0) + np.finfo(float).tiny
    # equal maps have equal shadows, so only polygons with neighbouring shadows need to be compared
    shadow = (maps / scale).reshape(len(maps), -1) @ np.random.default_rng(0).normal(size=scale.size)
    order = shadow.argsort()
    groups = np.split(order, np.flatnonzero(np.diff(shadow[order]) > 4 * SAME * scale.size) + 1)
    pairs = np.array([p for group in groups for p in _neighbours(group, corners, size)], dtype=int).reshape(-1, 2)
    pairs = pairs[_close(maps[pairs[:, 0]], maps[pairs[:, 1]], maps)]
    links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(maps), len(maps)))
    return connected_components(links, directed=False)[1]


def _neighbours(group: np.ndarray, corners: list[np.ndarray], size: float) -> list[tuple[int, int]]:
    """Pairs of polygons of the group that share a side, or part of one."""
    if len(group) == 1:
        return []
    sides = [(cell, a, b) for cell in group for a, b in pairwise([*corners[cell], corners[cell][0]])]
    owner = np.array([cell for cell, _, _ in sides])
    first, last = (np.array([side[k] for side in sides]) for k in (1, 2))
    along = last - first
    length = np.linalg.norm(along, axis=1)
    thin = 1e-9 * size
    pairs = []
    for i in np.flatnonzero(length > thin):
        unit = along[i] / length[i]
        away = [np.abs(unit[0] * (end - first[i])[:, 1] - unit[1] * (end - first[i])[:, 0]) for end in (first, last)]
        places = np.sort(np.stack([(end - first[i]) @ unit for end in (first, last)]), 0)
        overlap = np.minimum(places[1], length[i]) - np.maximum(places[0], 0.0)
        beside = (np.maximum(*away) <= thin) & (overlap > thin) & (owner > owner[i])
        pairs += [(owner[i], other) for other in owner[beside]]
    return pairs
