"""The picture of convergence: what was measured after each step, and the bound that is proved for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from ..theory.convergence import Convergence
from .style import ACCENT, INK, MAIN, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence"]

COLOURS = (MAIN, ACCENT, "#009E73", "#CC79A7", INK)


@takes("what the functions of theory.convergence give, or several by name", Convergence)
def convergence(
    curves: Convergence | Mapping[str, Convergence],
    *,
    powers: bool = False,
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Measured curves (lines) below their bounds (dashes), on a logarithmic scale; one, or several by name.

    A constant rate per step is a straight line; with `powers`, both axes are logarithmic, and 1/t is one.

    >>> from likely.theory.convergence import quadratic_convergence
    >>> convergence(quadratic_convergence([1.0, 3.0], steps=20)).get_title(loc="left")
    'Below the bound at every step'
    """
    named = {curves.method: curves} if isinstance(curves, Convergence) else dict(curves)
    if not 0 < len(named) <= len(COLOURS):
        raise DataError(
            f"curves must be between 1 and {len(COLOURS)} answers of theory.convergence; found {len(named)}."
        )
    quantities = {curve.quantity for curve in named.values()}
    if len(quantities) > 1:
        raise DataError(f"curves measure different things ({', '.join(sorted(quantities))}); draw them apart.")
    ax = axes_of(ax, 6.4, 4.2)
    ends: dict[str, tuple[float, str]] = {}
    for (name, curve), colour in zip(named.items(), COLOURS, strict=False):
        steps = np.arange(len(curve.measured))[1 if powers else 0 :]
        shown = np.where(curve.measured > 0, curve.measured, np.nan)[steps]
        ax.plot(steps, curve.bound[steps], color=colour, linewidth=1.2, linestyle=(0, (4, 3)), alpha=0.8)
        ax.plot(steps, shown, color=colour, linewidth=1.8, label=name)
        if np.isfinite(shown).any():
            ends[name] = (float(shown[np.isfinite(shown)][-1]), colour)
    ax.set_yscale("log")
    if powers:
        ax.set_xscale("log")
    broken = [name for name, curve in named.items() if not curve.holds]
    finish(
        ax,
        title=titled(title, f"Above the bound: {', '.join(broken)}" if broken else "Below the bound at every step"),
        note="lines: measured; dashes: bound",
        x="step",
        y=quantities.pop(),
    )
    side_labels(ax, max(len(curve.measured) for curve in named.values()) - 1, ends)
    return ax
