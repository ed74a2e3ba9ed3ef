"""The picture of a fit: training and validation loss over epochs, and the learning rate below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from .style import ACCENT, MAIN, MUTED, axes_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["history"]

NAMES = {"loss": "training", "validation": "validation"}


def history(record: Mapping[str, Sequence[float]], *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Loss by epoch, from a dict of lists with the keys "loss", "validation" and "lr" (each may be missing).

    >>> history({"loss": [3.0, 2.0, 1.5], "validation": [3.1, 2.4, 2.6]}).get_title(loc="left")
    'Validation loss was lowest after epoch 2 (2.4)'
    """
    curves = {key: np.asarray(record[key], dtype=float) for key in NAMES if key in record and len(record[key])}
    if not curves:
        raise DataError(f'record must have a list "loss" or "validation"; found {", ".join(record) or "nothing"}.')
    rate = np.asarray(record.get("lr", ()), dtype=float)
    ax = axes_of(ax, 6.2, 4.6 if len(rate) else 3.8)
    for key, values in curves.items():
        colour = MAIN if key == "loss" else ACCENT
        epochs = np.arange(1, len(values) + 1)
        ax.plot(epochs, values, color=colour, linewidth=1.7, label=NAMES[key])
        if key == "validation" and np.isfinite(values).any():
            best = int(np.nanargmin(values))
            ax.plot(best + 1, values[best], "o", color=colour, markersize=6, label="best")
    _label_ends(ax, curves)
    everything = np.concatenate([values[np.isfinite(values)] for values in curves.values()])
    if len(everything) and everything.min() > 0 and everything.max() > 50 * everything.min():
        ax.set_yscale("log")
    finish(ax, title=title or _finding(curves), x="" if len(rate) else "epoch", y="loss")
    if len(rate):
        below = ax.inset_axes((0, -0.34, 1, 0.2), sharex=ax)
        below.plot(np.arange(1, len(rate) + 1), rate, color=MUTED, linewidth=1.4)
        finish(below, title="", x="epoch", y="learning rate", grid="y")
        below.set_ylim(bottom=0)
        ax.tick_params(labelbottom=False)
    return ax


def _label_ends(ax: Axes, curves: dict[str, np.ndarray]) -> None:
    """Names at the right ends of the curves, the higher one up and the lower one down so that they do not meet."""
    ends = {key: values[np.isfinite(values)][-1] for key, values in curves.items() if np.isfinite(values).any()}
    highest = max(ends, key=lambda key: ends[key], default="")
    for key, end in ends.items():
        lift = 0 if len(ends) == 1 else 6 if key == highest else -6
        ax.annotate(
            NAMES[key],
            (len(curves[key]), end),
            xytext=(6, lift),
            textcoords="offset points",
            va="center",
            color=MAIN if key == "loss" else ACCENT,
            fontsize=9,
        )


def _finding(curves: dict[str, np.ndarray]) -> str:
    validation = curves.get("validation")
    if validation is not None and np.isfinite(validation).any():
        best = int(np.nanargmin(validation))
        return f"Validation loss was lowest after epoch {best + 1} ({validation[best]:.4g})"
    loss = next(iter(curves.values()))
    return f"Loss fell from {loss[0]:.4g} to {loss[-1]:.4g} in {len(loss)} epochs"
