"""A confusion matrix drawn: rows are actual classes, columns predicted ones, colour the fraction of the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from ..evaluate.protocol import as_array
from .style import INK, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["confusion"]


@takes("counts, actual by predicted: evaluate.confusion_matrix(y, model.predict(X))")
def confusion(
    matrix: Any, labels: Sequence[Any] | None = None, *, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """What `evaluate.confusion_matrix` found, with counts in the cells.

    >>> confusion([[8, 0], [0, 10]], ["cat", "dog"]).get_title(loc="left")
    '100% are right'
    """
    counts = as_array(matrix)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise DataError(f"matrix must be square, actual by predicted; found shape {counts.shape}.")
    names = [str(label) for label in (range(len(counts)) if labels is None else labels)]
    if len(names) != len(counts):
        raise DataError(f"labels must name each of the {len(counts)} classes; found {len(names)}.")
    fraction = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = 2.1 + 0.42 * max(len(counts), 4)
    ax = axes_of(ax, side + 0.5 + 0.09 * max(map(len, names)), side)
    ax.imshow(fraction, cmap="Blues", vmin=0, vmax=1.15)  # the darkest end of the map would swallow the text
    if len(counts) <= 15:
        for row, column in np.ndindex(*counts.shape):
            dark = fraction[row, column] > 0.55
            zero = counts[row, column] == 0
            colour = "white" if dark else "#BDBDBD" if zero else INK
            ax.text(column, row, f"{counts[row, column]:g}", ha="center", va="center", color=colour, fontsize=9)
    finding = f"{percent(np.trace(counts) / max(counts.sum(), 1))} are right"
    note = _worst(counts, names)
    finish(ax, title=titled(title, finding), note=note, x="predicted class", y="actual class", grid=None)
    wide = max(map(len, names)) > 4
    ax.set_xticks(range(len(names)), names, rotation=40 if wide else 0, ha="right" if wide else "center")
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="minor", length=0)
    return ax


def _worst(counts: np.ndarray, names: list[str]) -> str:
    wrong = counts - np.diag(np.diag(counts))
    if not wrong.any():
        return ""
    row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return f"most often mistaken: {names[row]} for {names[column]} ({wrong[row, column]:g})"
