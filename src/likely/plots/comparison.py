"""Pictures that compare models: the leaderboard, and bias² + variance + noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.takes import takes
from ..evaluate.comparison import Leaderboard
from ..evaluate.decomposition import BiasVariance
from ..evaluate.result import plus_minus
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bias_variance", "leaderboard"]


@takes("what evaluate.compare(models, X, y) gives", Leaderboard)
def leaderboard(board: Leaderboard, *, title: str | None = "auto", ax: Axes | None = None) -> Axes:
    """Cross-validated scores ± standard error, best on top; the paired difference to the best stands at the right.

    >>> from likely.evaluate.comparison import Entry
    >>> board = Leaderboard((Entry("net", -0.3, 0.02, 0.0, 0.0, 1.0), Entry("line", -0.5, 0.03, -0.2, 0.02, 0.1)))
    >>> leaderboard(board).get_title(loc="left")
    'net leads by 0.200 ± 0.020'
    """
    entries = board.entries
    ax = axes_of(ax, 6.6, 1.2 + 0.42 * len(entries))
    right = ax.get_yaxis_transform()
    for place, entry in enumerate(entries):
        leads = place == 0 and entry.error is None
        colour = MAIN if leads else MUTED
        note = "best" if leads else plus_minus(entry.difference, entry.difference_error)
        if entry.error is not None:
            note, colour = "failed", ACCENT
        elif not entry.scored:
            note = "no probabilities"
        elif np.isfinite(entry.score):
            error = entry.standard_error if np.isfinite(entry.standard_error) else 0.0
            ax.errorbar(entry.score, place, xerr=error, fmt="o", color=colour, markersize=6, linewidth=1.8)
        ax.text(1.02, place, note.replace("-", "−"), transform=right, va="center", color=colour, fontsize=9)
    finish(
        ax,
        title=titled(title, _leader(board)),
        note="at the right: paired difference to the best ± standard error",
        x="cross-validated log score in nats per row, ± standard error",
        y="",
        grid="x",
    )
    ax.set_yticks(range(len(entries)), [entry.name for entry in entries], color=INK, fontsize=9.5)
    ax.set_ylim(len(entries) - 0.5, -0.5)
    return ax


@takes("what evaluate.bias_variance(model, …) gives, or several by name", BiasVariance)
def bias_variance(
    results: BiasVariance | Mapping[Any, BiasVariance],
    *,
    x_label: str = "model",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """bias² + variance + noise as stacked bars, and the measured error ± 2 standard errors, which should end there.

    `results` is one answer of `evaluate.bias_variance`, or one for each model by name (or degree, or width …).

    >>> measured = {"error_standard_error": 0.05, "repeats": 50}
    >>> line = BiasVariance(bias_squared=0.5, variance=0.1, noise=1.0, error=1.6, **measured)
    >>> cubic = BiasVariance(bias_squared=0.0, variance=0.2, noise=1.0, error=1.2, **measured)
    >>> bias_variance({1: line, 3: cubic}, x_label="degree").get_xlabel()
    'degree'
    """
    named = {"": results} if isinstance(results, BiasVariance) else dict(results)
    answers = list(named.values())
    ax = axes_of(ax, max(4.0, 2.4 + 0.62 * len(answers)), 4.0)
    bottom = np.zeros(len(answers))
    places = np.arange(len(answers))
    last = len(answers) - 1
    names: dict[str, tuple[float, str]] = {}
    parts = [("noise", "noise", "#C9C9C9"), ("bias_squared", "bias²", ACCENT), ("variance", "variance", MAIN)]
    for attribute, name, colour in parts:
        height = np.array([max(0.0, getattr(answer, attribute)) for answer in answers])
        ax.bar(places, height, bottom=bottom, width=0.68, color=colour, label=name, linewidth=0)
        names[name] = (float(bottom[-1] + height[-1] / 2), MUTED if attribute == "noise" else colour)
        bottom = bottom + height
    error = np.array([answer.error for answer in answers])
    spread = 2 * np.array([answer.error_standard_error for answer in answers])
    ax.errorbar(places, error, spread, fmt="o", color=INK, markersize=4.5, linewidth=1.4, label="measured")
    finish(
        ax,
        title=titled(title, _least(named, x_label)),
        note="dots: measured on new targets ± 2 standard errors",
        x=x_label if len(named) > 1 else "",
        y="squared error",
        grid="y",
    )
    ax.set_xticks(places, [str(name) for name in named], color=INK)
    ax.set_xlim(-0.5, last + 0.5)
    side_labels(ax, last + 0.34, names)
    return ax


def _leader(board: Leaderboard) -> str:
    first, *others = board.entries
    if first.error is not None:
        return "Every model failed"
    if not first.scored:
        return "No model gives probabilities"
    scored = [entry for entry in others if entry.error is None and entry.scored]
    if not scored:
        return f"{first.name}: {plus_minus(first.score, first.standard_error)}"
    second = scored[0]
    margin = plus_minus(-second.difference, second.difference_error)
    if -second.difference <= 2 * second.difference_error:
        return f"{first.name} and {second.name} cannot be told apart (difference {margin})"
    return f"{first.name} leads by {margin}"


def _least(named: dict[Any, BiasVariance], x_label: str) -> str:
    best = min(named, key=lambda name: named[name].total)
    answer = named[best]
    if len(named) == 1:
        return f"bias² + variance + noise = {answer.total:.3g}, measured {answer.error:.3g}"
    return f"Least error at {x_label} {best}: {answer.total:.3g}, of which noise is {answer.noise:.3g}"
