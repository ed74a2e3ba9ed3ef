"""Pictures of hidden states: a sequence over time, with the state that it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from .style import INK, MUTED, axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["state_path"]

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F")
"""Okabe and Ito's colours, which can be told apart by colour-blind readers."""


@takes("a fitted HiddenMarkov, and the sequence X", "decode")
def state_path(
    model: Any,
    X: Any,
    *,
    time: Any = None,
    names: Any = None,
    column: int = 0,
    x_label: str = "step",
    label: str = "x",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """One column of a sequence over time on bands of its decoded states; below it p(state) of each step.

    Bands are the most probable path, the strip below is the posterior: where it mixes colours, the path is unsure.

    >>> from likely import HiddenMarkov
    >>> x = np.array([0.1, -0.2, 0.0, 5.1, 4.9, 5.0, 0.2, 0.1])
    >>> ax = state_path(HiddenMarkov(random_state=0).fit(x), x, label="height (m)", names=["low", "high"])
    >>> ax.get_ylabel()
    'height (m)'
    """
    path, posterior = model.decode(X), model.predict_proba(X)
    if not isinstance(path, np.ndarray):
        raise DataError("state_path draws one sequence; X is a list of sequences: give one of them.")
    values = np.asarray(X, dtype=float).reshape(len(path), -1)
    if not 0 <= column < values.shape[1]:
        raise DataError(f"column={column!r}: X has the columns 0 to {values.shape[1] - 1}.")
    states = posterior.shape[1]
    shown = [str(name) for name in names] if names is not None else [f"state {k}" for k in range(states)]
    if len(shown) != states:
        raise DataError(f"names must be one for each of the {states} states; found {len(shown)}.")
    when = np.arange(len(path), dtype=float) if time is None else np.asarray(time, dtype=float)
    if when.shape != path.shape or (np.diff(when) <= 0).any():
        raise DataError(f"time must be one rising number for each of the {len(path)} steps; found shape {when.shape}.")
    ax = axes_of(ax, 7.2, 4.0)
    edges = _edges(when)
    strip = ax.inset_axes((0.0, 0.0, 1.0, 0.13), sharex=ax)
    _bands(ax, path, edges)
    _strip(strip, posterior, edges)
    ax.plot(when, values[:, column], color=INK, linewidth=0.9, marker="o", markersize=2.2, label="data")
    low, high = np.nanmin(values[:, column]), np.nanmax(values[:, column])
    room = (high - low) or 1.0
    ax.set_yticks([tick for tick in ax.get_yticks() if low - 0.09 * room <= tick <= high + 0.08 * room])
    ax.set_ylim(low - 0.27 * room, high + 0.08 * room)  # the strip takes the lowest part
    ax.set_xlim(edges[0], edges[-1])
    _names(ax, shown, path)
    sure = float((posterior.max(1) >= 0.9).mean())
    changes = int((np.diff(path) != 0).sum())
    finding = f"{changes} changes between {len(np.unique(path))} states in {len(path)} steps"
    note = f"strip: probability of each state; one has at least 90% in {percent(sure)} of steps"
    return finish(ax, title=titled(title, finding), note=note, x=x_label, y=label, grid=None)


def _edges(when: np.ndarray) -> np.ndarray:
    """Half-way between the steps, and as far beyond the first and last."""
    if len(when) == 1:
        return when[0] + np.array([-0.5, 0.5])
    middle = (when[1:] + when[:-1]) / 2
    return np.concatenate([[2 * when[0] - middle[0]], middle, [2 * when[-1] - middle[-1]]])


def _bands(ax: Axes, path: np.ndarray, edges: np.ndarray) -> None:
    """One band for each stay in a state."""
    starts = np.flatnonzero(np.concatenate([[True], np.diff(path) != 0]))
    for start, stop in zip(starts, [*starts[1:], len(path)], strict=True):
        colour = COLOURS[path[start] % len(COLOURS)]
        ax.axvspan(edges[start], edges[stop], color=colour, alpha=0.22, linewidth=0, label=f"stay in {path[start]}")


def _strip(strip: Axes, posterior: np.ndarray, edges: np.ndarray) -> None:
    """Probabilities stacked to 1, as steps."""
    above = np.concatenate([np.zeros((len(posterior), 1)), posterior.cumsum(1)], 1)
    for k in range(posterior.shape[1]):
        low, high = (np.append(above[:, k + side], above[-1, k + side]) for side in (0, 1))
        colour = COLOURS[k % len(COLOURS)]
        strip.fill_between(edges, low, high, step="post", color=colour, alpha=0.85, linewidth=0, label=f"p(state {k})")
    strip.set_ylim(0, 1)
    strip.set_yticks([])
    strip.tick_params(labelbottom=False, length=0)
    for side in strip.spines.values():
        side.set_visible(False)


def _names(ax: Axes, names: list[str], path: np.ndarray) -> None:
    """The names of the states that occur, in their colours, above the data at the right."""
    from matplotlib.lines import Line2D

    seen = np.unique(path)
    marks = [Line2D([], [], marker="s", linestyle="", markersize=7, color=COLOURS[k % len(COLOURS)]) for k in seen]
    legend = ax.legend(
        marks,
        [names[k] for k in seen],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        fontsize=9,
        handletextpad=0.2,
        labelcolor=MUTED,
    )
    legend.set_in_layout(True)
