"""Pictures of calibration: confidence against frequency, the PIT histogram, promised against measured coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from ..core.errors import DataError
from ..core.takes import described, is_model, takes
from ..evaluate.intervals import Coverage
from ..evaluate.reliability import PIT, Reliability
from ..evaluate.reliability import calibration as measured
from .style import ACCENT, BAND, FAINT, INK, MAIN, MUTED, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "coverage"]


def calibration(
    result: Any, X: Any = None, y: Any = None, *, bins: int = 20, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """What `evaluate.calibration` found: a reliability diagram for classes, a PIT histogram for numbers.

    A fitted model with its rows X and targets y is measured first.

    >>> result = Reliability(np.array([0.3, 0.7]), np.array([0.3, 0.7]), np.array([0.1, 0.1]), np.array([20, 20]), 0.0)
    >>> calibration(result).get_title(loc="left")
    'Confidence matches what happens'
    """
    if is_model(result) and X is not None and y is not None:
        result = measured(result, X, y)
    if isinstance(result, Reliability):
        return _reliability(result, title, ax)
    if isinstance(result, PIT):
        return _pit(result, bins, title, ax)
    rows = " without its rows X and targets y" if is_model(result) else ""
    raise DataError(
        f"calibration draws what evaluate.calibration(model, X, y) returns, or takes model, X and y itself; found "
        f"{described(result)}{rows}."
    )


@takes("what evaluate.coverage(model, X, y) gives", Coverage)
def coverage(result: Coverage, *, title: str | None = "auto", ax: Axes | None = None) -> Axes:
    """Measured against promised coverage; grey is where right intervals fall 95 times in 100.

    >>> result = Coverage(np.array([0.9]), np.array([0.91]), np.array([0.01]), width=np.array([2.0]), count=900)
    >>> coverage(result).get_title(loc="left")
    '90% intervals cover 91%'
    """
    ax = axes_of(ax, 4.8, 4.4)
    grid = np.linspace(0, 1, 101)
    spread = 2 * np.sqrt(grid * (1 - grid) / result.count)
    ax.fill_between(grid, grid - spread, grid + spread, color=BAND, linewidth=0, label="expected")
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="promised")
    off = np.abs(result.covered - result.levels) > 2 * result.standard_error
    ax.plot(result.levels, result.covered, color=MAIN, linewidth=1.2, zorder=2)
    for level, covered, wrong in zip(result.levels, result.covered, off, strict=True):
        ax.plot(level, covered, "o", color=ACCENT if wrong else MAIN, markersize=6)
        above = covered >= level
        ax.annotate(
            percent(covered),
            (level, covered),
            xytext=(-7, 4) if above else (7, -4),
            textcoords="offset points",
            ha="right" if above else "left",
            va="bottom" if above else "top",
            fontsize=8.5,
            color=ACCENT if wrong else INK,
        )
    ax.set(xlim=(0, 1.03), ylim=(0, 1.03), aspect="equal")
    finding = titled(title, _coverage_finding(result, off))
    note = f"{result.count} targets; grey: ± 2 standard errors of right intervals"
    return _in_percent(finish(ax, title=finding, note=note, x="promised coverage", y="measured coverage"))


def _reliability(result: Reliability, title: str | None, ax: Axes | None) -> Axes:
    ax = axes_of(ax, 4.8, 5.0)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="calibrated")
    ax.vlines(
        result.confidence,
        np.maximum(result.confidence - 2 * result.standard_error, 0),
        np.minimum(result.confidence + 2 * result.standard_error, 1),
        color=FAINT,
        linewidth=7,
        label="expected",
    )
    off = np.abs(result.frequency - result.confidence) > 2 * result.standard_error
    for group, colour, name in ((~off, MAIN, "bins"), (off, ACCENT, "bins that are off")):
        ax.plot(result.confidence[group], result.frequency[group], "o", color=colour, markersize=6, label=name)
    excess = float((result.count * (result.confidence - result.frequency)).sum() / result.count.sum())
    noise = float(np.sqrt(((result.count * result.standard_error) ** 2).sum()) / result.count.sum())
    if abs(excess) > 2 * noise:
        finding = f"Confidence is too {'high' if excess > 0 else 'low'} by {abs(excess):.3f} on average"
    elif off.sum() > max(1, 0.2 * len(off)):
        finding = "Confidence is right on average but not at each level"
    else:
        finding = "Confidence matches what happens"
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    error = f"expected calibration error {result.expected_calibration_error:.3f}"
    counts = ax.inset_axes((0, -0.24, 1, 0.16), sharex=ax)
    counts.bar(result.confidence, result.count, width=0.035, color=MUTED, alpha=0.6)
    finish(counts, title="", x="confidence", y="rows", grid="y")
    finish(
        ax,
        title=titled(title, finding),
        note=f"{error}; grey: ± 2 standard errors if calibrated",
        x="",
        y="how often it came true",
    )
    ax.tick_params(labelbottom=False)
    return ax


def _pit(result: PIT, bins: int, title: str | None, ax: Axes | None) -> Axes:
    ax = axes_of(ax, 5.6, 3.8)
    rows = len(result.values)
    low, high = binom.ppf([0.025, 0.975], rows, 1 / bins) * bins / rows
    height, edges = np.histogram(result.values, bins=bins, range=(0, 1), density=True)
    middle = (low <= height) & (height <= high)
    colours = np.where(middle, MAIN, ACCENT)
    ax.bar(edges[:-1], height, width=np.diff(edges) * 0.94, align="edge", color=colours, alpha=0.85)
    ax.axhspan(low, high, color=MUTED, alpha=0.18, linewidth=0, label="expected")
    ax.axhline(1, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    ax.set(xlim=(0, 1), ylim=(0, max(1.2 * high, 1.05 * float(height.max()))))
    return finish(
        ax,
        title=titled(title, _pit_finding(result)),
        note="grey: where 95% of bars end if forecasts are right",
        x="F(y | x): where y fell in its forecast",
        y="density",
        grid="y",
    )


def _pit_finding(result: PIT) -> str:
    """The shape in words: a slope is bias, a cup is forecasts that are too narrow, a hump too wide."""
    if result.p_value > 0.05:
        return f"Forecast distributions fit (uniformity p = {result.p_value:.2g})"
    rows = len(result.values)
    shift = (result.values.mean() - 0.5) / np.sqrt(1 / 12 / rows)
    width = (((result.values - 0.5) ** 2).mean() - 1 / 12) / np.sqrt(1 / 180 / rows)
    if abs(shift) > abs(width):
        return (
            f"Forecasts are too {'low' if shift > 0 else 'high'}: targets fall {'above' if shift > 0 else 'below'} them"
        )
    if width > 0:
        return "Forecasts are too narrow: targets fall in their tails"
    return "Forecasts are too wide: targets fall near their middle"


def _coverage_finding(result: Coverage, off: np.ndarray) -> str:
    usual = int(np.abs(result.levels - 0.9).argmin())
    finding = f"{percent(result.levels[usual])} intervals cover {percent(result.covered[usual])}"
    others = [percent(level) for level, wrong in zip(result.levels, off, strict=True) if wrong]
    if off[usual] or not others:
        return finding
    return f"{finding}; those of {', '.join(others)} miss their promise"


def _in_percent(ax: Axes) -> Axes:
    from matplotlib.ticker import PercentFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
    return ax
