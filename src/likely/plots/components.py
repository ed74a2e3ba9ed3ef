"""Pictures of principal components and factors: how much variance each holds, and the rows seen along the first two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError
from .labels import Label, place_labels
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["components"]

MOST = 30
"""Bars that can still be told apart."""

ARROWS = 8
"""Columns drawn as arrows: those that weigh most."""


def components(model: Any, X: Any = None, *, title: str | None = "auto", ax: Axes | None = None) -> Axes:
    """A fitted `PCA` or `FactorAnalysis`: each component's fraction of variance; with X, the rows in the first two.

    In the picture of rows, arrows show the columns: a row far along an arrow is high in that column.

    >>> from likely import PCA
    >>> X = [[0.0, 0.0, 1.0], [1.0, 2.0, 1.0], [2.0, 4.1, 1.0], [3.0, 5.9, 1.1]]
    >>> components(PCA(2).fit(X)).get_title(loc="left")
    'The first component holds 100% of the variance'
    """
    check_is_fitted(model)
    loadings = getattr(model, "components_", None)
    if loadings is None or not hasattr(model, "get_covariance"):
        raise DataError(f"components draws a PCA or a FactorAnalysis; found a {type(model).__name__}.")
    fractions = _fractions(model)
    return _bars(fractions, title, ax) if X is None else _scores(model, X, fractions, title, ax)


def _fractions(model: Any) -> np.ndarray:
    """The part of the variance of all columns that each component holds."""
    ratio = getattr(model, "explained_variance_ratio_", None)
    if ratio is not None:
        return np.asarray(ratio)
    held = (model.components_**2).sum(1)
    return held / (held.sum() + np.sum(model.noise_variance_))


def _bars(fractions: np.ndarray, title: str | None, ax: Axes | None) -> Axes:
    drawn = min(len(fractions), MOST)
    ax = axes_of(ax, max(5.0, 2.4 + 0.2 * drawn), 3.8)
    place = np.arange(1, drawn + 1)
    total = np.cumsum(fractions)[:drawn]
    ax.bar(place, fractions[:drawn], width=0.68, color=MAIN, label="each")
    if drawn > 1:
        ax.plot(place, total, "o-", color=MUTED, markersize=3.5, linewidth=1.1, label="together")
        ax.annotate(
            "together",
            (place[-1], total[-1]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="right",
            color=MUTED,
            fontsize=9,
        )
    for x, fraction in zip(place, fractions, strict=False) if drawn <= 10 else ():
        ax.annotate(
            percent(fraction),
            (x, fraction),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8.5,
            color=INK,
        )
    enough = int(np.searchsorted(np.cumsum(fractions), min(0.9, 0.999 * fractions.sum()))) + 1
    who = "The first component holds" if enough == 1 else f"The first {enough} components hold"
    finding = f"{who} {percent(fractions[:enough].sum())} of the variance"
    note = "" if drawn == len(fractions) else f"the first {drawn} of {len(fractions)} components"
    ax.set(ylim=(0, 1.12), xlim=(0.4, max(drawn, 3) + 0.6))
    finish(ax, title=titled(title, finding), note=note, x="component", y="fraction of the variance", grid="y")
    ax.set_xticks(place if drawn <= 15 else place[4::5])
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1.0], [percent(tick) for tick in (0, 0.25, 0.5, 0.75, 1.0)])
    return ax


def _scores(model: Any, X: Any, fractions: np.ndarray, title: str | None, ax: Axes | None) -> Axes:
    if len(fractions) < 2:
        raise DataError("The rows are drawn along two components, but the model has 1; leave X out.")
    scores = np.asarray(model.transform(X))[:, :2]
    ax = axes_of(ax, 5.6, 4.8)
    clear = float(np.clip(30 / np.sqrt(len(scores)), 0.08, 0.8))
    ax.scatter(scores[:, 0], scores[:, 1], s=14, color=MAIN, alpha=clear, linewidth=0, label="rows")
    arrows = model.components_[:2].T  # (d, 2)
    length = np.linalg.norm(arrows, axis=1)
    names = getattr(model, "feature_names_in_", [f"column {i}" for i in range(len(arrows))])
    chosen = np.argsort(-length, kind="stable")[:ARROWS]
    ends = _reach(scores, arrows[chosen]) * arrows[chosen]
    for end in ends:
        ax.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": ACCENT, "linewidth": 1.1})
    ax.update_datalim(ends)  # an annotation does not: arrows that end outside the axes would not be drawn
    ax.margins(0.16)
    ax.autoscale_view()
    first, second = (percent(fraction) for fraction in fractions[:2])
    finding = f"The first two components hold {percent(fractions[:2].sum())} of the variance"
    most = "arrows: columns" if len(arrows) <= ARROWS else f"arrows: the {ARROWS} columns that weigh most"
    note = f"{len(scores)} rows; {most}"
    finish(ax, title=titled(title, finding), note=note, x=f"component 1 ({first})", y=f"component 2 ({second})")
    labels = [
        Label(_short(str(names[column])), end[None], end[None], ACCENT)
        for column, end in zip(chosen, ends, strict=True)
    ]
    along = np.linspace(0, 1, 60)[:, None, None] * ends
    place_labels(ax, labels, scores, along.reshape(-1, 2))
    return ax


def _reach(scores: np.ndarray, arrows: np.ndarray) -> float:
    """The factor under which arrows are long, and go beyond the rows by at most half of their range on either axis."""
    limit = np.ptp(scores, axis=0) / 2 + np.abs(scores).max(0)
    longest = np.abs(arrows).max(0)
    widest = 0.8 * np.abs(scores).max() / max(float(np.linalg.norm(arrows, axis=1).max()), 1e-300)
    return float(min(widest, *(limit / np.maximum(longest, 1e-300))))


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
