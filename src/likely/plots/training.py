"""The picture of a fit: training and validation loss over epochs, and the learning rate below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from .style import (
    ACCENT,
    MAIN,
    MUTED,
    axes_of,
    finish,
    side_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["history"]

NAMES = {"loss": "training", "validation": "validation"}
COLOURS = {"loss": MAIN, "validation": ACCENT}


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
        colour = COLOURS[key]
        epochs = np.arange(1, len(values) + 1)
        ax.plot(epochs, values, color=colour, linewidth=1.7, label=NAMES[key])
        if key == "validation" and np.isfinite(values).any():
            best = int(np.nanargmin(values))
            ax.plot(best + 1, values[best], "o", color=colour, markersize=6, label="best")
    everything = np.concatenate([values[np.isfinite(values)] for values in curves.values()])
    if len(everything) and everything.min() > 0 and everything.max() > 50 * everything.min():
        ax.set_yscale("log")
    ends = {NAMES[key]: (_last(values), COLOURS[key]) for key, values in curves.items() if np.isfinite(values).any()}
    side_labels(ax, max(map(len, curves.values())), ends)
    finish(ax, title=title or _finding(curves), x="" if len(rate) else "epoch", y="loss")
    if len(rate):
        below = ax.inset_axes((0, -0.26, 1, 0.18), sharex=ax)
        below.plot(np.arange(1, len(rate) + 1), rate, color=MUTED, linewidth=1.4)
        finish(below, title="", x="epoch", y="learning rate", grid="y")
        below.set_ylim(bottom=0)
        ax.tick_params(labelbottom=False)
    return ax


def _finding(curves: dict[str, np.ndarray]) -> str:
    validation = curves.get("validation")
    if validation is not None and np.isfinite(validation).any():
        best = int(np.nanargmin(validation))
        return f"Validation loss was lowest after epoch {best + 1} ({validation[best]:.4g})"
    loss = next(iter(curves.values()))
    way = "fell" if loss[-1] <= loss[0] else "rose" if loss[-1] > loss[0] else "went"  # NaN compares as neither
    return f"Loss {way} from {loss[0]:.4g} to {loss[-1]:.4g} in {len(loss)} epochs"


def _last(values: np.ndarray) -> float:
    return float(values[np.isfinite(values)][-1])
