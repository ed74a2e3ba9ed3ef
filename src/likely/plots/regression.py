"""Pictures of a fitted regressor: predictions against targets, bands along one input, residuals, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t

from ..core.errors import DataError
from ..core.takes import described, is_model, takes
from ..evaluate.metrics import r2, rmse
from ..evaluate.protocol import as_array, opened
from .style import ACCENT, FAINT, INK, MAIN, MUTED, axes_of, finish, percent, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coefficients", "predictions", "predictive_band", "residuals"]


@takes("a fitted model, its rows X and targets y", "predict")
def predictions(
    model: Any,
    X: Any,
    y: Any,
    *,
    level: float = 0.9,
    label: str = "y",
    title: str | None = "auto",
    most: int = 400,
    ax: Axes | None = None,
) -> Axes:
    """Each target over its prediction, with the interval that should hold it; targets outside theirs stand out.

    Above `most` rows, every k-th is drawn; the numbers in the title are of all.

    >>> from likely import Regressor
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> ax = predictions(Regressor().fit(X, [0, 1, 2, 3, 4, 5, 6, 9]), X, [0, 1, 2, 3, 4, 5, 6, 9], label="height (m)")
    >>> ax.get_ylabel()
    'actual height (m)'
    """
    actual, mean = _targets(model, X, y)
    finding = f"RMSE {rmse(actual, mean):.3g}, R² {r2(actual, mean):.2f}"
    shown = np.argsort(mean, kind="stable")[:: max(1, -(-len(mean) // most))]
    ax = axes_of(ax, 5.0, 4.6)
    inside = np.ones(len(mean), dtype=bool)
    inner, rows = opened(model, X)
    note = ""
    ends = np.array([min(actual.min(), mean.min()), max(actual.max(), mean.max())])
    if hasattr(inner, "predict_interval"):
        lower, upper = (np.asarray(bound, dtype=float) for bound in inner.predict_interval(rows, level=level))
        inside = (lower <= actual) & (actual <= upper)
        note, finding = finding, f"{percent(inside.mean())} of targets lie in their {percent(level)} interval"
        ax.vlines(mean[shown], lower[shown], upper[shown], color=MAIN, alpha=0.25, linewidth=0.9, label="interval")
    ax.plot(ends, ends, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="actual = predicted")
    for group, colour, name in ((inside, MAIN, "inside"), (~inside, ACCENT, "outside")):
        drawn = shown[group[shown]]
        ax.plot(mean[drawn], actual[drawn], "o", color=colour, markersize=3.6, markeredgewidth=0, label=name)
    if not inside[shown].all():
        ax.annotate(
            "● outside the interval", (0.98, 0.03), xycoords="axes fraction", ha="right", color=ACCENT, fontsize=9
        )
    return finish(ax, title=titled(title, finding), note=note, x=f"predicted {label}", y=f"actual {label}")


@takes("a fitted model, its rows X and targets y", "predict_dist")
def predictive_band(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    levels: Sequence[float] = (0.5, 0.9),
    points: int = 300,
    x_label: str = "x",
    label: str = "y",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """The prediction along one input with the central intervals of these levels, and the data.

    >>> from likely import Regressor
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> y = [0, 1, 2, 3, 4, 5, 6, 9]
    >>> predictive_band(Regressor().fit(X, y), X, y, x_label="age (years)").get_xlabel()
    'age (years)'
    """
    inputs = as_array(X)
    if inputs.ndim != 2 or inputs.shape[1] != 1:
        raise DataError(f"predictive_band draws along one input; X has shape {inputs.shape}, it must be (n, 1).")
    grid = np.linspace(inputs.min(), inputs.max(), points).reshape(-1, 1).astype(inputs.dtype, copy=False)
    inner, rows = opened(model, grid)
    ax = axes_of(ax, 6.4, 4.0)
    if y is not None:
        ax.plot(inputs[:, 0], as_array(y), "o", color=INK, alpha=0.55, markersize=3, markeredgewidth=0, label="data")
    names: dict[str, tuple[float, str]] = {}
    for rank, level in enumerate(sorted(levels, reverse=True)):
        lower, upper = inner.predict_interval(rows, level=level)
        opacity = 0.16 + 0.16 * rank
        ax.fill_between(grid[:, 0], lower, upper, color=MAIN, alpha=opacity, linewidth=0, label=percent(level))
        names[percent(level)] = (float(upper[-1]), MUTED)
    mean = as_array(model.predict(grid))
    ax.plot(grid[:, 0], mean, color=MAIN, linewidth=1.8, label="prediction")
    names["prediction"] = (float(mean[-1]), MAIN)
    ax.margins(x=0.02)
    side_labels(ax, float(grid[-1, 0]), names)
    bands = " and ".join(percent(level) for level in sorted(levels))
    return finish(
        ax, title=titled(title, f"{label} given {x_label}: prediction with {bands} intervals"), x=x_label, y=label
    )


@takes("a fitted model, its rows X and targets y", "predict")
def residuals(
    model: Any,
    X: Any,
    y: Any,
    *,
    bins: int = 10,
    label: str = "y",
    title: str | None = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Actual − predicted over the prediction, with means of equal-sized bins ± 2 standard errors: flat at 0 is right.

    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = X[:, 0] ** 2
    >>> residuals(LinearRegression().fit(X, y), X, y, label="price (€)").get_ylabel()
    'actual − predicted price (€)'
    """
    actual, mean = _targets(model, X, y)
    rest = actual - mean
    groups = [g for g in np.array_split(np.argsort(mean, kind="stable"), min(bins, max(1, len(mean) // 4))) if len(g)]
    centre = np.array([mean[group].mean() for group in groups])
    height = np.array([rest[group].mean() for group in groups])
    error = np.array([rest[group].std(ddof=1) / np.sqrt(len(group)) if len(group) > 1 else 0.0 for group in groups])
    # Student's t over all bins at once: residuals without a trend raise a false alarm once in a hundred pictures.
    limit = t.ppf(1 - 0.005 / len(groups), np.array([max(1, len(group) - 1) for group in groups])) * error
    clear = bool((np.abs(height) > np.maximum(limit, 1e-9 * actual.std())).any())
    finding = "Residuals depend on the prediction: something is left to learn" if clear else "Residuals show no trend"
    ax = axes_of(ax)
    ax.plot(mean, rest, "o", color=MUTED, alpha=0.35, markersize=3, markeredgewidth=0, label="rows")
    ax.axhline(0, color=INK, linewidth=0.9)
    colour = ACCENT if clear else MAIN
    ax.errorbar(centre, height, 2 * error, fmt="o-", color=colour, markersize=4.5, linewidth=1.5, label="mean ± 2 s.e.")
    note = f"line: mean of each of {len(groups)} equal parts ± 2 standard errors"
    return finish(ax, title=titled(title, finding), note=note, x=f"predicted {label}", y=f"actual − predicted {label}")


def coefficients(
    names: Any,
    values: Any = None,
    standard_errors: Any = None,
    *,
    title: str | None = "auto",
    x_label: str = "coefficient",
    ax: Axes | None = None,
) -> Axes:
    """Coefficients from largest to smallest, with ± 2 standard errors where they are known.

    Of a linear model give what its `summary()` returns, or the model; else names, values and standard errors.

    >>> ax = coefficients(["age", "income"], [0.2, -1.5], [0.3, 0.2])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['age', 'income']
    """
    if values is None:
        names, values, standard_errors = _of_summary(names)
    value = as_array(values).astype(float)
    if value.shape != (len(names),):
        raise DataError(f"values must be one number for each of the {len(names)} names; found shape {value.shape}.")
    error = np.zeros_like(value) if standard_errors is None else as_array(standard_errors).astype(float)
    order = np.argsort(np.abs(value), kind="stable")
    away = np.abs(value) > 2 * error
    ax = axes_of(ax, 5.6, 0.9 + 0.32 * len(names))
    ax.axvline(0, color=MUTED, linewidth=0.9)
    for place, row in enumerate(order):
        colour = MAIN if away[row] else MUTED
        ax.plot([0, value[row]], [place, place], color=FAINT, linewidth=1.2, zorder=1)
        ax.errorbar(value[row], place, xerr=2 * error[row] or None, fmt="o", color=colour, markersize=5, linewidth=1.5)
    finish(ax, title=titled(title, _coefficients_finding(names, value, error, away)), x=x_label, y="", grid="x")
    ax.set_yticks(range(len(names)), [str(names[row]) for row in order], color=INK)
    ax.set_ylim(-0.6, len(names) - 0.4)
    return ax


def _of_summary(given: Any) -> tuple[Sequence[str], Any, Any]:
    """Terms, estimates and standard errors of a summary, or of that of a fitted model, without intercepts.

    These are in the unit of the target, and would leave no room for the others.
    """
    if is_model(given) and not isinstance(given, type) and hasattr(given, "summary"):
        given = given.summary()
    if not hasattr(given, "estimate") or not hasattr(given, "terms"):
        raise DataError(
            "coefficients takes what model.summary() of a linear model returns, or names, values and standard errors; "
            f"found {described(given)} without values."
        )
    kept = [i for i, term in enumerate(given.terms) if not str(term).endswith("intercept")] or list(
        range(len(given.terms))
    )
    return [given.terms[i] for i in kept], given.estimate[kept], given.standard_error[kept]


def _coefficients_finding(names: Sequence[str], value: np.ndarray, error: np.ndarray, away: np.ndarray) -> str:
    if not error.any():
        return f"{names[int(np.abs(value).argmax())]} weighs most"
    return f"{int(away.sum())} of {len(value)} coefficients are clear of 0 (± 2 standard errors)"


def _targets(model: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Targets and predictions of the rows that have a target, as flat arrays."""
    told = {"y": as_array(y), "the prediction": as_array(model.predict(X))}
    for name, values in told.items():
        if values.dtype.kind not in "biuf":
            try:
                told[name] = values.astype(float)
            except (TypeError, ValueError):
                raise DataError(
                    f"The picture is of numbers, and {name} has labels such as {str(values.ravel()[0])!r}; of a "
                    "classifier draw plots.calibration(model, X, y), or "
                    "plots.confusion(evaluate.confusion_matrix(y, model.predict(X)))."
                ) from None
    actual, mean = (values.astype(float) for values in told.values())
    if actual.ndim != 1 or mean.shape != actual.shape:
        raise DataError(f"The picture is of one number per row; y has shape {actual.shape}, predictions {mean.shape}.")
    if np.isnan(actual).any():
        raise DataError("y has missing targets; leave those rows out of the picture.")
    return actual, mean
