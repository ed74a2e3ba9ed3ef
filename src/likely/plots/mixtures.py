"""The picture of a fitted mixture: rows in the colours of their components, and where each component lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.takes import takes
from ..evaluate.protocol import as_array
from .labels import Label, place_labels
from .style import axes_of, finish, percent, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mixture"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F6A93", "#6E6E6E")
"""Told apart by colour-blind readers; after the last the first comes again."""


@takes("a fitted GaussianMixture, and its rows X", "weights_")
def mixture(
    model: Any,
    X: Any,
    *,
    columns: tuple[int, int] = (0, 1),
    names: tuple[str, str] | None = None,
    title: str | None = "auto",
    most: int = 2000,
    ax: Axes | None = None,
) -> Axes:
    """Two columns of the rows, coloured by component, with each component's 1σ and 2σ ellipses and its weight.

    Rows between components are pale: their opacity is the probability of their component. Above `most` rows, every
    k-th is drawn. `names` are the labels of the two axes.

    >>> from likely import GaussianMixture
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.3], [5.0, 5.1], [5.2, 5.0], [5.1, 5.3]])
    >>> model = GaussianMixture(2, "spherical", random_state=0).fit(X)
    >>> mixture(model, X, names=("height (m)", "width (m)")).get_xlabel()
    'height (m)'
    """
    rows = as_array(X).astype(float)
    first, second = columns
    if rows.ndim != 2 or not (0 <= first < rows.shape[1] and 0 <= second < rows.shape[1]) or first == second:
        raise DataError(f"mixture draws two columns; X has shape {rows.shape} and columns={columns} was asked for.")
    responsibilities = model.predict_proba(X)
    label = responsibilities.argmax(1)
    shown = np.arange(len(rows))[:: max(1, -(-len(rows) // most))]
    ax = axes_of(ax, 5.6, 4.8)
    rings, words = [], []
    for k, weight in enumerate(model.weights_):
        colour = COLOURS[k % len(COLOURS)]
        own = shown[label[shown] == k]
        opacity = 0.15 + 0.6 * responsibilities[own, k]
        x, y = rows[own, first], rows[own, second]
        ax.scatter(x, y, s=13, c=colour, alpha=opacity, linewidths=0, label=f"component {k}")
        mean, covariance = _moments(model.distributions_[k], rows.shape[1])
        centre, spread = mean[[first, second]], covariance[np.ix_(columns, columns)]
        rings.append(_ellipses(ax, centre, spread, colour))
        words.append(_name(f"{k}: {percent(weight)}", rings[-1], centre, colour))
    known = getattr(model, "feature_names_in_", None)
    labels = names or tuple(f"column {j}" if known is None else str(known[j]) for j in columns)
    note = "ellipses: 1σ and 2σ, with component and weight; clear: a probability of 90%"
    finish(ax, title=titled(title, _finding(model.weights_, responsibilities)), note=note, x=labels[0], y=labels[1])
    ax.margins(0.1)
    ax.autoscale_view()
    place_labels(ax, words, rows[shown][:, [first, second]], np.concatenate(rings))
    return ax


def _moments(component: Any, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean (d,) and covariance (d, d) of one component: of one distribution, or of several side by side."""
    parts = list(component.values()) if isinstance(component, dict) else [component]
    mean = np.concatenate([np.atleast_1d(part.mean.numpy()) for part in parts])
    covariance = np.zeros((width, width))
    start = 0
    for part in parts:
        size = np.atleast_1d(part.mean.numpy()).size
        own = slice(start, start + size)
        full = getattr(part, "covariance_matrix", None)
        covariance[own, own] = np.diag(np.atleast_1d(part.variance.numpy())) if full is None else full.numpy()
        start += size
    return mean, covariance


def _ellipses(ax: Axes, centre: np.ndarray, covariance: np.ndarray, colour: str) -> np.ndarray:
    """Draw the ellipses at 1σ and 2σ; the outer one as points along it, (m, 2)."""
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    width, height = 2 * np.sqrt(np.maximum(values[::-1], 0))
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    for sigmas, line in ((1, 1.7), (2, 0.9)):
        x, y = float(centre[0]), float(centre[1])
        ring = Ellipse((x, y), sigmas * width, sigmas * height, angle=angle, fill=False, color=colour, linewidth=line)
        ax.add_patch(ring)
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    return centre + (circle * 2 * np.sqrt(np.maximum(values, 0))) @ vectors.T


def _name(text: str, ring: np.ndarray, centre: np.ndarray, colour: str) -> Label:
    """Words at the top of the outer ellipse, or elsewhere around it where rows are in the way."""
    highest = np.argsort(-ring[:, 1], kind="stable")[::8]
    return Label(text, ring[highest], (ring - centre)[highest], colour)


def _finding(weights: np.ndarray, responsibilities: np.ndarray) -> str:
    unsure = float((responsibilities.max(1) < 0.9).mean())
    if len(weights) == 1:
        return "One component"
    clear = "every row has a clear one" if unsure == 0 else f"{percent(unsure)} of rows have no clear one"
    return f"{len(weights)} components; {clear}"
