"""How pictures look: few colours, no frame, direct labels, the finding as the title."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ACCENT", "BAND", "FAINT", "GREEN", "INK", "MAIN", "MUTED", "axes_of", "finish", "percent"]

MAIN = "#0072B2"
"""What the picture is about."""
ACCENT = "#D55E00"
"""What needs attention."""
GREEN = "#009E73"
INK = "#262626"
MUTED = "#6E6E6E"
FAINT = "#E3E3E3"
BAND = "#EDEDED"


def axes_of(ax: Axes | None, width: float = 5.6, height: float = 4.0) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def finish(ax: Axes, *, title: str, x: str, y: str, grid: str | None = "both") -> Axes:
    """Axis labels, the title at the left, light grid lines behind the data, and no frame."""
    ax.set_title(title, loc="left", fontsize=11, color=INK, pad=10)
    ax.set_xlabel(x, fontsize=9.5, color=MUTED)
    ax.set_ylabel(y, fontsize=9.5, color=MUTED)
    ax.tick_params(colors=MUTED, labelsize=8.5, length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(True, axis=grid, color=FAINT, linewidth=0.7)  # type: ignore[arg-type]
    return ax


def percent(value: Any) -> str:
    """A share as text: 0.9 is 90 %."""
    text = f"{100 * float(value):.1f}".removesuffix(".0")
    return f"{text} %"
