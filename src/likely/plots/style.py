"""How pictures look: few colours, no frame, direct labels, the finding as the title."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ACCENT", "BAND", "FAINT", "INK", "MAIN", "MUTED", "axes_of", "finish", "percent", "side_labels", "titled"]

MAIN = "#0072B2"
"""What the picture is about."""
ACCENT = "#D55E00"
"""What needs attention."""
INK = "#262626"
MUTED = "#6E6E6E"
FAINT = "#E3E3E3"
BAND = "#EDEDED"


def axes_of(ax: Axes | None, width: float = 5.6, height: float = 4.0) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    return ax


def titled(title: str | None, finding: str) -> str:
    """What stands above a picture: the finding where the title is "auto", nothing for None, else the title.

    >>> titled("auto", "AUC 0.9"), titled(None, "AUC 0.9"), titled("Fig. 2", "AUC 0.9")
    ('AUC 0.9', '', 'Fig. 2')
    """
    return finding if title == "auto" else title or ""


def finish(ax: Axes, *, title: str | None, x: str, y: str, note: str = "", grid: str | None = "both") -> Axes:
    """Axis labels, the title at the left with a note below it, light grid lines behind the data, and no frame."""
    room = ax.get_window_extent().width / ax.figure.dpi * 13  # about 13 letters an inch
    note = fill(note, int(1.2 * room))
    lines = len(note.splitlines())
    ax.set_title(fill(title or "", int(room)), loc="left", fontsize=11, color=INK, pad=8 + 13 * lines)
    if note:
        ax.annotate(
            note,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 7),
            textcoords="offset points",
            va="bottom",
            color=MUTED,
            fontsize=9,
        )
    ax.set_xlabel(x, fontsize=9.5, color=MUTED)
    ax.set_ylabel(y, fontsize=9.5, color=MUTED)
    ax.tick_params(which="both", colors=MUTED, labelsize=8.5, length=0, pad=5)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(True, axis=grid, color=FAINT, linewidth=0.7)  # type: ignore[arg-type]
    return ax


def percent(value: Any) -> str:
    """A fraction as text: 0.9 is 90%."""
    text = f"{100 * float(value):.1f}".removesuffix(".0")
    return f"{text}%"


def side_labels(ax: Axes, x: float, labels: dict[str, tuple[float, str]]) -> None:
    """Names beside the right end x of lines or bars, given as {name: (height, colour)}, moved apart where they meet."""
    low, high = ax.get_ylim()
    transform = ax.transData.transform  # a logarithmic axis has no constant gap in data units
    point = ax.figure.dpi / 72
    bottom = -float("inf")
    for name, (height, colour) in sorted(labels.items(), key=lambda item: item[1][0]):
        _, place = transform((x, min(max(height, low), high)))
        lifted = max(place, bottom + 11 * point)
        bottom = lifted
        ax.annotate(
            name,
            (x, height),
            xytext=(6, (lifted - place) / point),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=9,
        )
