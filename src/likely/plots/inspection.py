"""Pictures of what scikit-learn's inspection tells: which columns matter, and how the prediction follows one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.takes import described, is_model
from ..data.frame import some
from .style import FAINT, INK, MAIN, MUTED, axes_of, finish, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["importance", "partial_dependence"]


def importance(
    result: Any, names: Sequence[str] | None = None, *, title: str | None = "auto", ax: Axes | None = None
) -> Axes:
    """What `sklearn.inspection.permutation_importance` measured: how much worse the score is without each column.

    >>> from likely import Regressor
    >>> from sklearn.inspection import permutation_importance
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Regressor().fit(X, X[:, 0])
    >>> ax = importance(permutation_importance(model, X, X[:, 0], random_state=0), ["age", "pay"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['pay', 'age']
    """
    if not hasattr(result, "importances_mean"):
        raise DataError(
            f"importance draws what sklearn.inspection.permutation_importance returns; found a {type(result).__name__}."
        )
    mean, spread = np.asarray(result.importances_mean), np.asarray(result.importances_std)
    labels = [f"x{i}" for i in range(len(mean))] if names is None else [str(name) for name in names]
    if len(labels) != len(mean):
        raise DataError(f"names has {len(labels)} names for {len(mean)} columns.")
    order = np.argsort(mean, kind="stable")
    ax = axes_of(ax, 5.6, 1.2 + 0.32 * len(mean))
    ax.axvline(0, color=MUTED, linewidth=0.9)
    clear = mean > 2 * spread
    for place, row in enumerate(order):
        ax.plot([0, mean[row]], [place, place], color=FAINT, linewidth=1.2, zorder=1)
        colour = MAIN if clear[row] else MUTED
        ax.errorbar(mean[row], place, xerr=2 * spread[row] or None, fmt="o", color=colour, markersize=5, linewidth=1.5)
    best = int(mean.argmax())
    finding = f"{labels[best]} matters most: without it the score falls by {mean[best]:.2g}"
    finding = finding if clear[best] else "No column matters beyond chance"
    note = "± 2 standard deviations over shuffles"
    finish(ax, title=titled(title, finding), note=note, x="loss of score when the column is shuffled", y="", grid="x")
    ax.set_yticks(range(len(mean)), [labels[row] for row in order], color=INK)
    ax.set_ylim(-0.6, len(mean) - 0.4)
    return ax


def partial_dependence(
    result: Any,
    X: Any = None,
    name: Any = None,
    *,
    label: str = "prediction",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """What `sklearn.inspection.partial_dependence` measured for one column: the mean prediction at each of its values.

    With `kind="both"` or `"individual"` the lines of single rows stand behind it.

    Parameters
    ----------
    result : what scikit-learn's function gave, and the name of the column after it; or a fitted model.
    X, name : of a model: its rows (n, columns), and the column, by name or by number.
    label : what is predicted, for the axis. title : a heading; "auto" says what the line does, None draws none.
    ax : where to draw.

    See also
    --------
    importance : how much each column matters. theory.explain : single predictions.

    >>> from likely import Regressor
    >>> from sklearn.inspection import partial_dependence as measured
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Regressor().fit(X, 2 * X[:, 0])
    >>> partial_dependence(measured(model, X, [0], kind="both"), "age").get_title(loc="left")
    'prediction rises with age, by 8.3'
    """
    if is_model(result):
        result, name = _measured(result, X, name)
    name = str(name if name is not None else X if isinstance(X, str) else "x")
    if "grid_values" not in getattr(result, "keys", list)():
        raise DataError(
            "partial_dependence draws what sklearn.inspection.partial_dependence returns, or takes a model, its rows X "
            f"and a column; found {described(result)}."
        )
    if len(result["grid_values"]) != 1:
        raise DataError(f"The picture is of one column; the result has {len(result['grid_values'])}.")
    (grid,) = result["grid_values"]
    single = np.asarray(result["individual"])[-1] if "individual" in result else None
    mean = np.asarray(result["average"])[-1] if "average" in result else np.asarray(single).mean(0)
    ax = axes_of(ax)
    for line in () if single is None else single[: min(len(single), 100)]:
        ax.plot(grid, line, color=FAINT, linewidth=0.7)
    ax.plot(grid, mean, color=MAIN, linewidth=2)
    finish(ax, title=titled(title, _movement(mean, name, label)), x=name, y=f"mean {label}")
    return ax


def _measured(model: Any, X: Any, column: Any) -> tuple[Any, Any]:
    """The partial dependence of a model on one column of its rows, and the name of the column."""
    from sklearn import inspection

    names = list(getattr(X, "columns", range(np.shape(X)[1] if np.ndim(X) == 2 else 0)))
    if isinstance(column, Sequence) and not isinstance(column, str) and len(column) == 1:
        (column,) = column
    if column not in names and not (isinstance(column, int | np.integer) and 0 <= column < len(names)):
        shown = f"the columns {some(map(str, names))}" if names else described(X)
        raise DataError(
            f"partial_dependence(model, X, column) draws one column of X; found column={column!r}, and X has {shown}."
        )
    place = names.index(column) if column in names else int(column)
    return inspection.partial_dependence(model, X, [place]), names[place] if hasattr(X, "columns") else f"x{place}"


def _movement(mean: np.ndarray, name: str, label: str) -> str:
    steps, reach = np.diff(mean), float(mean.max() - mean.min())
    if reach <= 1e-9 * max(1.0, float(np.abs(mean).max())):
        return f"{label} does not depend on {name}"
    if (steps >= -0.02 * reach).all() or (steps <= 0.02 * reach).all():
        return f"{label} {'rises' if mean[-1] > mean[0] else 'falls'} with {name}, by {reach:.2g}"
    return f"{label} moves by {reach:.2g} with {name}, up and down"
