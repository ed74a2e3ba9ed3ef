"""Pictures of explanations: heat over images, bars for the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..theory.explain import Attribution
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["attribution"]

FEW, MANY = 6, 12
"""Images drawn side by side, and bars one below the other, unless told."""
BRIGHTEST = 99.0
"""The percentile of sizes that has full colour: single pixels would leave the rest pale."""
WORDS = {"log_odds": "log-odds", "probability": "probability", "mean": "mean", "output": "output"}
WORDED = 4.4
"""Inches that the words above images need."""


def attribution(
    explained: Attribution,
    X: Any = None,
    *,
    rows: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """What each input counts: of images a heat map over the picture, of tables a bar for each column.

    Blue speaks for what is explained, orange against it. `rows` says which images are drawn, or of which rows of a
    table: one has its bars, with standard errors where they are known; several have the mean size of theirs, which is
    also what is drawn by default if there are several. X are pictures to draw below the heat, if they are not those
    that were explained.

    >>> explained = Attribution(np.array([[1.0, -2.0]]), "shapley", "mean", None, np.array([3.0]), np.array([4.0]))
    >>> attribution(explained, names=["area", "age"]).get_title(loc="left")
    'age counts most: −2 of the mean 3'
    """
    if not isinstance(explained, Attribution):
        raise DataError("attribution draws what the functions of likely.theory.explain return.")
    chosen = list(range(len(explained))) if rows is None else list(rows)
    if not chosen or not all(0 <= row < len(explained) for row in chosen):
        raise DataError(f"rows={rows!r} must name rows that were explained, from 0 to {len(explained) - 1}.")
    if explained.values.ndim == 2:
        return _bars(explained, chosen, names, title, ax)
    if explained.values.ndim != 4:
        raise DataError(f"The attributions are (n, …) = {explained.values.shape}; tables and images are drawn.")
    return _heat(explained, X, chosen[:FEW] if rows is None else chosen, title, ax)


def _bars(
    explained: Attribution, rows: list[int], names: Sequence[str] | None, title: str | None, ax: Axes | None
) -> Axes:
    single = len(rows) == 1
    values = explained.values[rows[0]] if single else np.abs(explained.values[rows]).mean(0)
    columns = explained.column_names(names)
    order = np.argsort(-np.abs(values), kind="stable")[:MANY][::-1]
    ax = axes_of(ax, 5.8, 1.3 + 0.34 * len(order))
    colours = [MAIN if values[j] >= 0 else ACCENT for j in order]
    ax.barh(range(len(order)), values[order], color=colours, height=0.62)
    if single and explained.standard_error is not None:
        error = 2 * explained.standard_error[rows[0]][order]
        ax.errorbar(values[order], range(len(order)), xerr=error, fmt="none", ecolor=INK, elinewidth=1.1)
    ax.axvline(0, color=MUTED, linewidth=0.8)
    given = None if explained.X is None or not single else explained.X[rows[0]]
    labels = [columns[j] if given is None else f"{columns[j]} = {given[j]:.3g}" for j in order]
    first, what = columns[order[-1]], _what(explained, rows[0] if single else None)
    size = f"{values[order[-1]]:.3g}".replace("-", "−")
    whole = f"{explained.output[rows[0]]:.3g}".replace("-", "−")
    finding = f"{first} counts most: {size} of {what} {whole}" if single else f"{first} counts most"
    finish(
        ax, title=titled(title, finding), note=_note(explained, single, len(rows)), x=f"share of {what}", y="", grid="x"
    )
    ax.set_yticks(range(len(order)), labels)
    ax.set_ylim(-0.7, len(order) - 0.3)
    return ax


def _what(explained: Attribution, row: int | None) -> str:
    word = f"the {WORDS.get(explained.of, explained.of)}"
    if explained.target is None or explained.of == "output":
        return word
    if row is None:
        labels = np.unique(explained.target)
        return f"{word} of {labels[0]}" if len(labels) == 1 else f"{word} of each row's class"
    return f"{word} of {explained.target[row]}"


def _note(explained: Attribution, single: bool, rows: int) -> str:
    words = [explained.method if single else f"{explained.method}: mean size over {rows} rows"]
    if single and explained.standard_error is not None:
        words.append("lines are two standard errors either way")
    return "; ".join(words)


def _heat(explained: Attribution, X: Any, rows: list[int], title: str | None, ax: Axes | None) -> Axes:
    pictures = _pictures(explained.X if X is None else np.asarray(X, dtype=float), explained)
    values = explained.values.sum(1)  # channels of a place count together
    height, width = values.shape[1:]
    gap, room = max(1, width // 10), max(2, height // 6)
    reach = max(float(np.percentile(np.abs(values[rows]), BRIGHTEST)), 1e-12)
    signed = bool(values[rows].min() < 0)
    ax = axes_of(ax, max(WORDED, 1.3 + 1.45 * len(rows)), 3.9)
    across, down = width + gap, height + room
    for place, row in enumerate(rows):
        left = place * across
        ax.imshow(pictures[row], cmap="gray", extent=(left, left + width, height, 0), interpolation="nearest")
        box = (left, left + width, down + height, down)
        ax.imshow(pictures[row].mean(-1) if pictures.ndim == 4 else pictures[row], cmap="gray", extent=box, alpha=0.55)
        ax.imshow(_coloured(values[row] / reach, signed), extent=box, interpolation="nearest")
        if explained.target is not None:
            text = f"{explained.target[row]}"
            ax.text(left + width / 2, height + room / 2, text, ha="center", va="center", fontsize=9, color=INK)
    ax.set_xlim(-1, len(rows) * across - gap + 1)
    ax.set_ylim(2 * down - room + 1, -1)
    finding = f"Where {_what(explained, None)} comes from" if explained.of in WORDS else "Where the model looked"
    colours = "blue speaks for it, orange against it" if signed else "the stronger the blue, the more it counts"
    finish(ax, title=titled(title, finding), note=f"{explained.method}; {colours}", x="", y="", grid=None)
    ax.set_xticks([])
    ax.set_yticks([height / 2, down + height / 2], ["as it is", "what counts"])
    ax.set_aspect("equal", anchor="W")  # the words above one image need the room beside it
    return ax


def _coloured(share: np.ndarray, signed: bool) -> np.ndarray:
    """Blue or orange whose strength is how much a pixel counts: (h, w, 4)."""
    from matplotlib.colors import to_rgb

    clipped = np.clip(share, -1 if signed else 0, 1)
    colour = np.where(clipped[..., None] >= 0, to_rgb(MAIN), to_rgb(ACCENT))
    return np.concatenate([colour, np.abs(clipped)[..., None]], -1)


def _pictures(X: np.ndarray | None, explained: Attribution) -> np.ndarray:
    """Pictures between 0 and 1: (n, h, w), or (n, h, w, 3) in colour."""
    if X is None or X.ndim != 4 or len(X) != len(explained) or X.shape[2:] != explained.values.shape[2:]:
        shape = None if X is None else X.shape
        raise DataError(f"X has shape {shape}; the pictures of {explained.values.shape} attributions are needed.")
    low, high = X.min(), X.max()
    scaled = (X - low) / max(high - low, 1e-12)
    return np.moveaxis(scaled, 1, -1) if X.shape[1] == 3 else scaled.mean(1)
