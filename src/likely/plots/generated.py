"""Pictures of generated rows: images in a grid, columns beside the data, codes in a plane, the way from noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from ..evaluate.generated.pairs import pair_of
from ..evaluate.protocol import as_array
from .mixtures import COLOURS
from .style import ACCENT, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["image_grid", "latent_map", "pairs", "trajectory"]

CROWDED = 40.0
MARKS = ("o", "^", "s", "D")


@takes("images (n, h, w): of a model, model.sample(n)")
def image_grid(images: Any, *, columns: int | None = None, title: str | None = "", ax: Axes | None = None) -> Axes:
    """Images (n, c, h, w) or (n, h, w) beside and below each other, on one grey scale, or in colour for three channels.

    >>> image_grid(np.zeros((6, 1, 8, 8)), columns=3).get_images()[0].get_array().shape
    (17, 26)
    """
    pixels = np.asarray(as_array(images), dtype=float)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels
    if pixels.ndim != 4 or pixels.shape[1] not in (1, 3) or not len(pixels):
        raise DataError(f"images have shape {np.shape(images)}; (n, h, w), (n, 1, h, w) or (n, 3, h, w) is needed.")
    count, channels, height, width = pixels.shape
    across = columns or math.ceil(math.sqrt(count))
    down = math.ceil(count / across)
    low, high = float(np.nanmin(pixels)), float(np.nanmax(pixels))
    canvas = np.full((down * (height + 1) - 1, across * (width + 1) - 1, channels), high)
    for index, image in enumerate(pixels):
        top, left = index // across * (height + 1), index % across * (width + 1)
        canvas[top : top + height, left : left + width] = np.moveaxis(image, 0, -1)
    side = max(0.55, 2.2 / across)  # inches; few images are drawn larger
    ax = axes_of(ax, 0.6 + side * across, 0.8 + side * down)
    if channels == 3:
        ax.imshow((canvas - low) / max(high - low, 1e-12), interpolation="nearest")
    else:
        ax.imshow(canvas[..., 0], cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    finish(ax, title=title, x="", y="", grid=None)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


@takes("rows of the data, and generated ones: model.sample(n)")
def pairs(
    real: Any,
    generated: Any,
    *,
    columns: tuple[int, int] = (0, 1),
    names: tuple[str, str] | None = None,
    title: str | None = "Generated rows beside the data",
    most: int = 2000,
    ax: Axes | None = None,
) -> Axes:
    """Two columns of real rows (grey) and of generated ones (in colour); of more than `most`, every k-th is drawn.

    >>> rng = np.random.default_rng(0)
    >>> len(pairs(rng.normal(size=(50, 3)), rng.normal(size=(40, 3))).collections)
    2
    """
    both = pair_of(real, generated)
    first, second = columns
    width = both.real.shape[1]
    if not (0 <= first < width and 0 <= second < width) or first == second:
        raise DataError(f"pairs draws two columns of {width}; columns={columns} was asked for.")
    ax = axes_of(ax, 5.4, 4.8)
    for rows, colour, label in ((both.real, MUTED, "data"), (both.generated, MAIN, "generated")):
        shown = rows[:: max(1, -(-len(rows) // most))]
        ax.scatter(shown[:, first], shown[:, second], s=8, c=colour, alpha=0.45, linewidths=0, label=label)
    labels = names or tuple(str(name) for name in _names(real, columns))
    finish(ax, title=title, x=labels[0], y=labels[1])
    _legend(ax, loc="best")
    return ax


def latent_map(
    model: Any, X: Any, labels: Any = None, *, title: str | None = "Codes of the rows", ax: Axes | None = None
) -> Axes:
    """The first two numbers of each row's code, `model.transform(X)`, in the colours of labels.

    Where there are more labels than colours, those that come again have another mark.

    >>> from likely import PCA
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> latent_map(PCA(2).fit(X), X, np.arange(30) % 3).get_xlabel()
    'z₁'
    """
    if not hasattr(model, "transform"):
        raise DataError(f"latent_map takes a fitted model with transform and its rows; found a {type(model).__name__}.")
    codes = np.asarray(model.transform(X), dtype=float).reshape(len(X), -1)
    plane = codes.shape[1] > 1
    codes = codes if plane else np.column_stack([codes, np.zeros(len(codes))])
    ax = axes_of(ax, 5.4, 4.8)
    if labels is None:
        ax.scatter(codes[:, 0], codes[:, 1], s=10, c=MAIN, alpha=0.6, linewidths=0)
    else:
        given = np.asarray(labels)
        if len(given) != len(codes):
            raise DataError(f"labels has {len(given)} entries, but X has {len(codes)} rows.")
        for index, label in enumerate(np.unique(given)):
            own, look = codes[given == label], _look(index)
            ax.scatter(own[:, 0], own[:, 1], s=11, alpha=0.6, linewidths=0, label=str(label), **look)
        _legend(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))
    if plane:
        ax.set_aspect("equal", adjustable="datalim")  # codes have one unit
    else:
        ax.set_yticks([])
    return finish(ax, title=title, x="z₁", y="z₂" if plane else "")


def trajectory(
    states: Any,
    *,
    columns: tuple[int, int] = (0, 1),
    names: tuple[str, str] | None = None,
    ends: tuple[str, str] = ("noise", "rows"),
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The ways of rows through the steps of a flow or a diffusion, (steps, n, d): lines from the first to the last.

    A diffusion goes from noise to rows; a flow goes the other way, `ends=("rows", "noise")`. Lines are fainter the more
    ink they would take.

    >>> walk = np.random.default_rng(0).normal(size=(10, 4, 2)).cumsum(0)
    >>> ax = trajectory(walk, ends=("rows", "noise"))
    >>> len(ax.lines), ax.get_title(loc="left")
    (4, 'From rows to noise')
    """
    ways = np.asarray(states, dtype=float)
    ways = ways.reshape(*ways.shape[:2], -1)
    first, second = columns
    if ways.ndim != 3 or not (0 <= first < ways.shape[2] and 0 <= second < ways.shape[2]):
        raise DataError(f"states have shape {np.shape(states)}; (steps, n, d) with columns {columns} is needed.")
    ways = ways[..., [first, second]]
    ax = axes_of(ax, 5.4, 4.8)
    ax.plot(ways[..., 0], ways[..., 1], color=MUTED, alpha=_faintness(ways), linewidth=0.8)
    for at, colour, label in ((0, ACCENT, ends[0]), (-1, MAIN, ends[1])):
        ax.scatter(ways[at, :, 0], ways[at, :, 1], s=11, c=colour, linewidths=0, label=label, zorder=3)
    labels = names or (f"column {first}", f"column {second}")
    finish(ax, title=titled(title, f"From {ends[0]} to {ends[1]}"), x=labels[0], y=labels[1])
    _legend(ax, loc="best")
    return ax


def _faintness(ways: np.ndarray) -> float:
    """The opacity at which lines, together CROWDED times as long as the picture is wide, leave its points readable."""
    spread = np.maximum(ways.max((0, 1)) - ways.min((0, 1)), 1e-12)
    length = float(np.sqrt(np.square(np.diff(ways, axis=0) / spread).sum(-1)).sum())
    return float(np.clip(0.4 * CROWDED / max(length, 1e-12), 0.04, 0.4))


def _look(index: int) -> dict[str, Any]:
    """Colour and mark of the label with this number."""
    *colours, _ = COLOURS  # the last, grey, is too near to the one before it in a cloud of points
    return {"color": colours[index % len(colours)], "marker": MARKS[index // len(colours) % len(MARKS)]}


def _legend(ax: Axes, **place: Any) -> None:
    """A legend whose marks are large and opaque enough to be told apart."""
    from matplotlib.legend_handler import HandlerPathCollection

    def opaque(handle: Any, original: Any) -> None:
        handle.update_from(original)
        handle.set_alpha(1.0)

    own = {type(cloud): HandlerPathCollection(update_func=opaque) for cloud in ax.collections}
    ax.legend(frameon=False, fontsize=9, markerscale=1.8, handler_map=own, **place)


def _names(rows: Any, columns: tuple[int, int]) -> tuple[Any, ...]:
    known = list(getattr(rows, "columns", ()))
    return tuple(known[index] if known else f"column {index}" for index in columns)
