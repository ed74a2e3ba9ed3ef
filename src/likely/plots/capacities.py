"""A picture of Cover's count: which fraction of all labellings a linear unit can make, over points for each weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from ..theory.capacity import capacity as capacity_of
from ..theory.capacity import separable_fraction
from .mixtures import COLOURS
from .style import MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["capacity"]


def capacity(dimensions: Sequence[int] = (5, 25, 200), *, title: str | None = "auto", ax: Axes | None = None) -> Axes:
    """The fraction of separable labellings of n points over n/d, for several numbers of weights d.

    All curves meet at n = 2d, where the fraction is one half; the larger d, the steeper they fall there.

    >>> capacity((5, 50)).get_title(loc="left")
    'A linear unit with d weights holds 2d points'
    """
    if not len(dimensions):
        raise DataError("dimensions must be one or more numbers of weights; found none.")
    ax = axes_of(ax, 6.2, 4.0)
    for place, d in enumerate(sorted(dimensions)):
        first, last = -(-capacity_of(d) // 4), 2 * capacity_of(d)
        n = np.unique(np.linspace(first, last, min(last - first + 1, 400)).round().astype(int))
        fraction = np.array([separable_fraction(int(count), d) for count in n])
        colour = COLOURS[place % len(COLOURS)]
        mark = "o" if len(n) <= 40 else ""
        ax.plot(n / d, fraction, color=colour, linewidth=1.6, marker=mark, markersize=3, label=f"d = {d}")
    ax.axvline(2, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    ax.axhline(0.5, color=MUTED, linewidth=0.6, linestyle=(0, (1, 3)))
    ax.set_ylim(-0.03, 1.03)
    ax.margins(x=0.02)
    # the curves cross and end together, so there is no room beside them
    ax.legend(frameon=False, fontsize=9, loc="upper right", labelcolor="linecolor")
    return finish(
        ax,
        title=titled(title, "A linear unit with d weights holds 2d points"),
        note="dashed: n = 2d, where half of all labellings are separable, whatever d",
        x="points for each weight, n/d",
        y="fraction of labellings that are separable",
    )
