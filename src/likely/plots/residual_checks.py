"""Pictures of quantile residuals: over the prediction, and their quantiles against those of the normal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import beta, norm, t

from ..core.errors import DataError
from ..evaluate.residuals import QuantileResiduals
from .style import ACCENT, BAND, INK, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["qq", "quantile_residuals"]


def quantile_residuals(
    result: QuantileResiduals,
    *,
    bins: int = 10,
    label: str = "mean",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Residuals over the prediction: a right model has them around 0, nineteen of twenty between −2 and 2, everywhere.

    >>> result = QuantileResiduals(np.linspace(-2, 2, 40), np.arange(40.0) % 7, 0.9)
    >>> quantile_residuals(result).get_title(loc="left")
    'Residuals show no trend'
    """
    _check(result, "quantile_residuals")
    order = np.argsort(result.fitted, kind="stable")
    groups = [group for group in np.array_split(order, min(bins, max(1, len(order) // 4))) if len(group)]
    centre = np.array([result.fitted[group].mean() for group in groups])
    height = np.array([result.values[group].mean() for group in groups])
    error = np.array([1 / np.sqrt(len(group)) for group in groups])  # their standard deviation is 1, if all is right
    spread = np.array([result.values[group].std(ddof=1) if len(group) > 1 else 1.0 for group in groups])
    degrees = np.array([max(1, len(group) - 1) for group in groups])
    limit = t.ppf(1 - 0.005 / len(groups), degrees) * np.maximum(error, spread * error)
    clear = bool((np.abs(height) > limit).any())
    ax = axes_of(ax)
    ax.axhspan(-2, 2, color=BAND, linewidth=0)
    ax.plot(result.fitted, result.values, "o", color=MUTED, alpha=0.4, markersize=3, markeredgewidth=0, label="rows")
    ax.axhline(0, color=INK, linewidth=0.9)
    if result.fitted.min() > 0 and result.fitted.max() > 20 * np.median(result.fitted):
        ax.set_xscale("log")  # a few large predictions would press all others together
    colour = ACCENT if clear else MAIN
    ax.errorbar(centre, height, 2 * error, fmt="o-", color=colour, markersize=4.5, linewidth=1.5, label="mean ± 2 s.e.")
    finding = "Residuals depend on the prediction: something is left to learn" if clear else "Residuals show no trend"
    note = f"line: mean of each of {len(groups)} equal parts ± 2 standard errors; grey: 95% of a right model's"
    return finish(ax, title=titled(title, finding), note=note, x=f"predicted {label}", y="quantile residual")


def qq(result: QuantileResiduals, *, title: str | None = "auto", ax: Axes | None = None) -> Axes:
    """Quantiles of the residuals against those of a standard normal; grey is where each falls 95 times in 100.

    >>> normal = norm.ppf((np.arange(50) + 0.5) / 50)
    >>> qq(QuantileResiduals(normal, np.zeros(50), 1.0), title="Fits").get_title(loc="left")
    'Fits'
    """
    _check(result, "qq")
    values = np.sort(result.values)
    count = len(values)
    rank = np.arange(1, count + 1)
    expected = norm.ppf((rank - 0.5) / count)
    low, high = (norm.ppf(beta.ppf(level, rank, count + 1 - rank)) for level in (0.025, 0.975))
    ax = axes_of(ax, 4.8, 4.6)
    ax.fill_between(expected, low, high, color=BAND, linewidth=0, label="expected")
    ends = np.array([expected[0], expected[-1]])
    ax.plot(ends, ends, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    off = (values < low) | (values > high)
    for group, colour in ((~off, MAIN), (off, ACCENT)):
        ax.plot(expected[group], values[group], "o", color=colour, markersize=3.5, markeredgewidth=0)
    note = f"{count} targets; grey: where 95% fall at each place if the model is right"
    return finish(ax, title=titled(title, _finding(result)), note=note, x="standard normal", y="quantile residual")


def _finding(result: QuantileResiduals) -> str:
    if result.p_value > 0.05:
        return f"Residuals are as a normal distribution has them (p = {result.p_value:.2g})"
    mean, spread = result.values.mean(), result.values.std()
    if abs(mean) * np.sqrt(len(result.values)) > 3:
        return f"Predictions are too {'low' if mean > 0 else 'high'}: residuals have mean {mean:.2f}"
    if spread > 1.1:
        return f"Targets vary more than the model says: residuals have standard deviation {spread:.2f}"
    if spread < 0.9:
        return f"Targets vary less than the model says: residuals have standard deviation {spread:.2f}"
    return f"The shape of the distribution is off (p = {result.p_value:.2g})"


def _check(result: object, name: str) -> None:
    if not isinstance(result, QuantileResiduals):
        raise DataError(f"{name} draws what evaluate.quantile_residuals returns; found a {type(result).__name__}.")
