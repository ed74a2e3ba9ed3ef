"""The picture of double descent: error on training and new rows over the size of the model, and the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from ..theory.double_descent import DoubleDescent
from .style import ACCENT, MAIN, MUTED, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["double_descent"]

SMALLEST = 0.05
"""Training errors below this fraction of the least error on new rows are drawn there: exact fits have the error 0."""


@takes("what theory.double_descent(…) gives", DoubleDescent)
def double_descent(
    curve: DoubleDescent, *, x_label: str = "features", title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """Errors on training and new rows (with quartiles) by size, and the interpolation threshold.

    >>> test = np.array([1.0, 9.0, 0.8])
    >>> curve = DoubleDescent((5, 20, 80), np.array([0.5, 0.0, 0.0]), test, np.array([test, test]), 20)
    >>> double_descent(curve).get_title(loc="left")
    'Error on new rows peaks at 20 features, and is least at 80'
    """
    sizes = np.asarray(curve.sizes, dtype=float)
    if sizes.min() <= 0:
        raise DataError(f"sizes must be positive to be drawn; found {sizes.min():g}.")
    ax = axes_of(ax, 6.6, 4.2)
    seen = curve.test[np.isfinite(curve.test) & (curve.test > 0)]
    least = SMALLEST * float(seen.min()) if len(seen) else SMALLEST
    train, test, lower, upper = (np.maximum(values, least) for values in (curve.train, curve.test, *curve.quartiles))
    ax.fill_between(sizes, lower, upper, color=ACCENT, alpha=0.16, linewidth=0)
    ax.plot(sizes, test, "o-", color=ACCENT, markersize=3.6, linewidth=1.7, label="new rows")
    ax.plot(sizes, train, "o-", color=MAIN, markersize=3.6, linewidth=1.7, label="training rows")
    if sizes.max() > 10 * sizes.min():
        ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(least / 1.5)
    finish(
        ax,
        title=titled(title, f"Error on new rows peaks at {curve.peak:g} {x_label}, and is least at {curve.best:g}"),
        note="medians and quartiles over fits; exact fits are drawn at the bottom",
        x=x_label,
        y=curve.measure,
    )
    ax.axvline(curve.threshold, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="threshold", zorder=1)
    ax.annotate(
        "every row can be fitted",
        (curve.threshold, 0.96),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        color=MUTED,
        fontsize=8.5,
        va="top",
    )
    ends = {"new rows": (float(test[-1]), ACCENT), "training rows": (float(train[-1]), MAIN)}
    side_labels(ax, float(sizes[-1]), ends)
    return ax
