"""The picture of a fit: training and validation loss, or those of players, over epochs, and the learning rate below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from .style import ACCENT, MAIN, MUTED, axes_of, finish, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["history"]

NAMES = {"loss": "training", "validation": "validation"}
PLAYER = "_loss"
"""How the keys of players' losses end."""
COLOURS = (MAIN, ACCENT, "#009E73", "#CC79A7")


@takes("a dict of lists, such as model.history_ of a trained network", Mapping)
def history(record: Mapping[str, Sequence[float]], *, title: str | None = "auto", ax: Axes | None = None) -> Axes:
    """Loss by epoch, from a dict of lists with the keys "loss", "validation" and "lr" (each may be missing).

    Of a game, each player's: "generator_loss", "critic_loss" and so on.

    >>> history({"loss": [3.0, 2.0, 1.5], "validation": [3.1, 2.4, 2.6]}).get_title(loc="left")
    'Validation loss was lowest after epoch 2 (2.4)'
    """
    names = NAMES | {key: key.removesuffix(PLAYER) for key in record if key.endswith(PLAYER)}
    curves = {key: np.asarray(record[key], dtype=float) for key in names if key in record and len(record[key])}
    if not curves:
        raise DataError(
            f'record must have a list "loss", "validation" or "…{PLAYER}"; found {", ".join(record) or "nothing"}.'
        )
    colours = {key: ACCENT if key == "validation" else COLOURS[k % len(COLOURS)] for k, key in enumerate(curves)}
    rate = np.asarray(record.get("lr", ()), dtype=float)
    ax = axes_of(ax, 6.2, 4.6 if len(rate) else 3.8)
    for key, values in curves.items():
        colour = colours[key]
        epochs = np.arange(1, len(values) + 1)
        ax.plot(epochs, values, color=colour, linewidth=1.7, label=names[key])
        if key == "validation" and np.isfinite(values).any():
            best = int(np.nanargmin(values))
            ax.plot(best + 1, values[best], "o", color=colour, markersize=6, label="best")
    everything = np.concatenate([values[np.isfinite(values)] for values in curves.values()])
    if len(everything) and everything.min() > 0 and everything.max() > 50 * everything.min():
        ax.set_yscale("log")
    ends = {names[key]: (_last(values), colours[key]) for key, values in curves.items() if np.isfinite(values).any()}
    side_labels(ax, max(map(len, curves.values())), ends)
    finish(ax, title=titled(title, _finding(curves)), x="" if len(rate) else "epoch", y="loss")
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
    if "loss" not in curves:
        ends = ", ".join(f"{key.removesuffix(PLAYER)} {values[-1]:.3g}" for key, values in curves.items())
        return f"After {max(map(len, curves.values()))} epochs: {ends}"
    loss = curves["loss"]
    way = "fell" if loss[-1] <= loss[0] else "rose" if loss[-1] > loss[0] else "went"  # NaN compares as neither
    return f"Loss {way} from {loss[0]:.4g} to {loss[-1]:.4g} in {len(loss)} epochs"


def _last(values: np.ndarray) -> float:
    return float(values[np.isfinite(values)][-1])
