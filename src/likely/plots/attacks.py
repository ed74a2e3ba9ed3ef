"""Pictures of attacks: accuracy against the radius, and what was changed in images that fooled a model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from ..evaluate.protocol import as_array
from ..evaluate.robustness import Robustness
from ..robust import Attacked
from .style import ACCENT, INK, MAIN, MUTED, finish, percent, side_labels, titled
from .style import axes_of as new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["perturbation", "robustness"]

COLOURS = (MAIN, ACCENT, "#009E73", "#CC79A7", "#E69F00", MUTED)


def robustness(
    result: Robustness | Mapping[str, Robustness], *, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """What `evaluate.robustness` found: accuracy against radius; several curves by name.

    >>> result = Robustness(0.98, np.array([0.1, 0.2]), np.array([0.7, 0.2]), math.inf, 100)
    >>> robustness(result).get_title(loc="left")
    'Of 98% right, 20% withstand a radius of 0.2'
    """
    curves = {"": result} if isinstance(result, Robustness) else result
    named = isinstance(curves, Mapping) and len(curves) > 0
    if not named or not all(isinstance(curve, Robustness) for curve in curves.values()):
        raise DataError("robustness draws what evaluate.robustness returns, or several of them by name.")
    ax = new_axes(ax, 5.6, 3.8)
    for index, curve in enumerate(curves.values()):
        radii, accuracy = np.r_[0.0, curve.radii], np.r_[curve.clean, curve.accuracy]
        ax.plot(radii, accuracy, "o-", color=COLOURS[index % len(COLOURS)], linewidth=1.6, markersize=4)
    ax.set_ylim(-0.02, 1.04)
    first = next(iter(curves.values()))
    finding = (
        f"Of {percent(first.clean)} right, {percent(first.accuracy[-1])} withstand a radius of {first.radii[-1]:g}"
    )
    if len(curves) > 1:
        finding = _best(curves)
    norm = "∞" if math.isinf(first.norm) else f"{first.norm:g}"
    note = f"{first.count} rows; an attack that fails proves nothing, so these are upper bounds"
    finish(ax, title=titled(title, finding), note=note, x=f"radius in the {norm}-norm", y="accuracy")
    ax.yaxis.set_major_formatter(lambda value, _: percent(value))
    if len(curves) > 1:
        ends = {
            name: (float(curve.accuracy[-1]), COLOURS[index % len(COLOURS)])
            for index, (name, curve) in enumerate(curves.items())
        }
        side_labels(ax, max(float(curve.radii[-1]) for curve in curves.values()), ends)
    return ax


def _best(curves: Mapping[str, Robustness]) -> str:
    """Which one withstands most, where they differ most."""
    radius = max(
        (float(r) for r in next(iter(curves.values())).radii),
        key=lambda r: np.ptp([_at(c, r) for c in curves.values()]),
    )
    best = max(curves, key=lambda name: _at(curves[name], radius))
    return f"{best} withstands most: {percent(_at(curves[best], radius))} at a radius of {radius:g}"


def _at(curve: Robustness, radius: float) -> float:
    return float(np.interp(radius, np.r_[0.0, curve.radii], np.r_[curve.clean, curve.accuracy]))


@takes("rows X first, then what robust.attack(model, X, y, …) gives")
def perturbation(
    X: Any,
    found: Attacked,
    y: Any = None,
    *,
    rows: Sequence[int] | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Images as they were, what an attack added to them, and what it made of them, one column for each image.

    Below each image stands its label y, and what the model says of the changed one. `rows` says which to draw; by
    default the first eight that fooled the model by a change. X is (n, h, w), (n, 1, h, w), or (n, side²).

    >>> X = np.zeros((2, 1, 4, 4))
    >>> size = np.ones(2)
    >>> found = Attacked(X + 0.1, np.array([True, True]), np.array([7, 8]), np.array([1, 1]), size, size, size)
    >>> [text.get_text() for text in perturbation(X, found, [3, 5]).texts]
    ['3', '3 → 7', '5', '5 → 8']
    """
    before, after = (_images(part) for part in (X, found.perturbed))
    if before.shape != after.shape:
        raise DataError(f"X has shape {np.shape(X)}, and the attack was on rows of shape {found.perturbed.shape}.")
    fooled = np.flatnonzero(found.success & (found.linf > 0))
    chosen = list(rows) if rows is not None else (fooled if len(fooled) else np.arange(len(before)))[:8].tolist()
    if not chosen or not all(0 <= row < len(before) for row in chosen):
        raise DataError(f"rows={rows!r} must name rows of X, from 0 to {len(before) - 1}.")
    height, width = before.shape[1:]
    gap, room = max(1, width // 14), max(2, height // 4)
    low, high = min(before[chosen].min(), after[chosen].min()), max(before[chosen].max(), after[chosen].max())
    ax = new_axes(ax, 1.4 + 0.95 * len(chosen), 4.3)
    across, down = width + gap, height + room
    reach = max(float(np.abs(after[chosen] - before[chosen]).max()), 1e-12)
    labels = None if y is None else as_array(y)
    for place, row in enumerate(chosen):
        panels = (
            (before[row], "gray", low, high),
            (after[row] - before[row], "RdBu_r", -reach, reach),
            (after[row], "gray", low, high),
        )
        for line, (image, colours, least, most) in enumerate(panels):
            left, top = place * across, line * down
            box = (left, left + width, top + height, top)
            ax.imshow(image, cmap=colours, vmin=least, vmax=most, extent=box, interpolation="nearest")
        middle, was = place * across + width / 2, "" if labels is None else f"{labels[row]}"
        says = f"{was} → {found.predicted[row]}" if was else f"{found.predicted[row]}"
        colour = ACCENT if found.success[row] else INK
        for line, text, ink in ((0, was, INK), (2, says, colour)):
            if text:
                bottom = line * down + height + room / 2
                ax.text(middle, bottom, text, ha="center", va="center", fontsize=9, color=ink)
    ax.set_xlim(-1, len(chosen) * across - gap + 1)
    ax.set_ylim(3 * down - room / 4, -1)
    finish(ax, title=titled(title, f"{int(found.success.sum())} of {len(before)} rows fooled"), x="", y="", grid=None)
    ax.set_xticks([])
    ax.set_yticks([line * down + height / 2 for line in range(3)], ["as it was", f"change (± {reach:.2g})", "changed"])
    ax.set_aspect("equal")
    return ax


def _images(rows: Any) -> np.ndarray:
    """Grey images (n, height, width)."""
    pixels = np.asarray(as_array(rows), dtype=float)
    if pixels.ndim == 4 and pixels.shape[1] == 1:
        return pixels[:, 0]
    if pixels.ndim == 2 and len(pixels) and math.isqrt(pixels.shape[1]) ** 2 == pixels.shape[1]:
        side = math.isqrt(pixels.shape[1])
        return pixels.reshape(-1, side, side)
    if pixels.ndim != 3 or not len(pixels):
        raise DataError(f"X has shape {pixels.shape}; (n, h, w), (n, 1, h, w) or (n, side²) is needed.")
    return pixels
