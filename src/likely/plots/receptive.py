"""A picture of what a unit of a convolutional network sees: its field layer by layer, and where in it it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..theory.receptive_field import Field, receptive_field, receptive_gradient, receptive_span
from .style import ACCENT, FAINT, INK, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["receptive"]


def receptive(
    network: Any,
    in_shape: Sequence[int],
    *,
    position: Sequence[int] | None = None,
    rows: int = 256,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The field of one unit after the last convolution (the middle one if no position is given).

    The shade is the mean |∂unit/∂x| over `rows` images of noise; frames are the fields of units in its middle, after
    each layer that sees more than the one before. For series, the fields lie below one another.

    >>> from likely.networks import ConvNet
    >>> receptive(ConvNet((4, 8)), (1, 28, 28)).get_title(loc="left")
    'A unit sees 10 × 10 of 28 × 28 pixels'
    """
    seen = receptive_gradient(network, in_shape, position, rows=rows).cpu().numpy()
    span = receptive_span(network, in_shape, position)
    wider = _widening(receptive_field(network, in_shape))
    ax = axes_of(ax, 8.0, 5.0) if seen.ndim == 2 else axes_of(ax, 7.6, 4.0)
    (_draw_image if seen.ndim == 2 else _draw_series)(ax, seen, span, wider)
    extent = " × ".join(str(part.stop - part.start) for part in span)
    whole = " × ".join(map(str, seen.shape))
    finding = f"A unit sees {extent} of {whole} {'pixels' if seen.ndim == 2 else 'positions'}"
    note = "shade: how much it changes with each, for random weights" if seen.ndim == 2 else ""
    note = note or "curve: how much it changes with each, for random weights · bars: fields"
    x, y = ("column", "row") if seen.ndim == 2 else ("position", "mean |gradient|, largest = 1")
    return finish(ax, title=titled(title, finding), note=note, x=x, y=y, grid=None)


def _draw_image(ax: Axes, seen: np.ndarray, span: tuple[slice, ...], wider: list[tuple[int, Field]]) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    shades = LinearSegmentedColormap.from_list("shade", ["white", MAIN])
    ax.imshow(np.sqrt(seen / max(seen.max(), np.finfo(float).tiny)), cmap=shades, interpolation="nearest")
    ax.add_patch(Rectangle((-0.5, -0.5), *seen.shape[::-1], fill=False, edgecolor=FAINT, linewidth=1.5, clip_on=False))
    middle = [_middle(part) for part in span]
    for rank, (number, field) in enumerate(wider):
        last = rank == len(wider) - 1
        corners = [max(-0.5, m - size / 2) for m, size in zip(middle, field.size, strict=True)]
        ends = [min(n - 0.5, m + size / 2) for m, size, n in zip(middle, field.size, seen.shape, strict=True)]
        if last:
            corners, ends = [part.start - 0.5 for part in span], [part.stop - 0.5 for part in span]
        colour = ACCENT if last else INK
        frame = (corners[1], corners[0]), ends[1] - corners[1], ends[0] - corners[0]
        ax.add_patch(Rectangle(*frame, fill=False, edgecolor=colour, linewidth=1.6 if last else 0.8, label=str(number)))
    _list_layers(ax, wider)


def _draw_series(ax: Axes, seen: np.ndarray, span: tuple[slice, ...], wider: list[tuple[int, Field]]) -> None:
    relative = seen / max(seen.max(), np.finfo(float).tiny)
    ax.fill_between(np.arange(len(seen)), relative, step="mid", color=MAIN, alpha=0.35, linewidth=0, label="gradient")
    middle = _middle(span[0])
    for rank, (number, field) in enumerate(wider):
        last = rank == len(wider) - 1
        low, high = max(-0.5, middle - field.size[0] / 2), min(len(seen) - 0.5, middle + field.size[0] / 2)
        if last:
            low, high = span[0].start - 0.5, span[0].stop - 0.5
        height = -0.1 * (rank + 1)
        ax.plot([low, high], [height, height], color=ACCENT if last else INK, linewidth=3, label=str(number))
    ax.set_xlim(-0.5, len(seen) - 0.5)
    ax.set_yticks([0, 0.5, 1])
    _list_layers(ax, wider)


def _list_layers(ax: Axes, wider: list[tuple[int, Field]]) -> None:
    """Layers that widen the field, and how wide it then is, beside the picture."""
    for rank, (number, field) in enumerate(wider):
        last = rank == len(wider) - 1
        size = " × ".join(map(str, field.size))
        ax.annotate(
            f"layer {number} ({field.layer}): {size}",
            (1, 1),
            xycoords="axes fraction",
            xytext=(8, -10 - 14 * rank),
            textcoords="offset points",
            color=ACCENT if last else MUTED,
            fontsize=9,
        )


def _middle(part: slice) -> float:
    return (part.start + part.stop - 1) / 2


def _widening(fields: tuple[Field, ...]) -> list[tuple[int, Field]]:
    """Layers after which a unit sees more than before, with their numbers from 1."""
    layers: list[tuple[int, Field]] = []
    for number, field in enumerate(fields, 1):
        if not layers or field.size != layers[-1][1].size:
            layers.append((number, field))
    return layers
