"""A picture of a Gaussian process along one input: what it expects, how sure it is, and functions it holds possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataError
from ..core.random import isolated, seed_of
from ..core.takes import takes
from ..evaluate.protocol import as_array
from .style import ACCENT, INK, MAIN, MUTED, axes_of, finish, percent, side_labels, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["process"]


@takes("a fitted GaussianProcess, its rows X and targets y", "predict_dist")
def process(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    level: float = 0.9,
    paths: int = 3,
    reach: float = 0.1,
    points: int = 300,
    x_label: str = "x",
    label: str = "y",
    title: str | None = "auto",
    random_state: Any = 0,
    ax: Axes | None = None,
) -> Axes:
    """The mean and the central band of a fitted `GaussianProcess` along its one input, sampled paths, and the data.

    It reaches beyond the data by the fraction `reach` of their range, where the process returns to its prior. With
    normal noise the paths are functions of the posterior; with labels, counts and other targets the mean and the band
    are those of the targets, and no paths are drawn.

    >>> from likely.models.kernel.gaussian_process import GaussianProcess
    >>> X, y = np.arange(6.0)[:, None], np.sin(np.arange(6.0))
    >>> process(GaussianProcess(learn=False).fit(X, y), X, y, x_label="time (s)").get_xlabel()
    'time (s)'
    """
    inputs = as_array(X).astype(float)
    if inputs.ndim != 2 or inputs.shape[1] != 1:
        raise DataError(f"process draws along one input; X has shape {inputs.shape}, it must be (n, 1).")
    if paths < 0:
        raise DataError(f"paths={paths} must be an integer, 0 or more.")
    margin = reach * (inputs.max() - inputs.min())
    grid = np.linspace(inputs.min() - margin, inputs.max() + margin, points)[:, None]
    labels = hasattr(model, "predict_proba")
    if labels and len(model.classes_) != 2:
        raise DataError(f"process draws one curve; the model has {len(model.classes_)} classes.")
    ax = axes_of(ax, 7.0, 4.2)
    if labels:
        middle = model.predict_proba(grid)[:, 1]
        finding = f"Probability of {model.classes_[1]} given {x_label}"
        names = {str(model.classes_[1]): (float(middle[-1]), MAIN)}
        ax.axhline(0.5, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    else:
        lower, upper = model.predict_interval(grid, level=level)
        middle = model.predict(grid)
        ax.fill_between(grid[:, 0], lower, upper, color=MAIN, alpha=0.16, linewidth=0, label=percent(level))
        names = {percent(level): (float(upper[-1]), MUTED), "mean": (float(middle[-1]), MAIN)}
        finding = f"{label} given {x_label}: mean and {percent(level)} band"
        if paths and model.noise_ is not None:
            with isolated(seed_of(random_state)):
                functions = model.posterior(grid).sample((paths,)).numpy()
            for number, path in enumerate(functions):
                ax.plot(grid[:, 0], path, color=ACCENT, alpha=0.7, linewidth=0.9, label=f"path {number + 1}")
            finding += f", with {paths} sampled function{'s' if paths > 1 else ''}"
    ax.plot(grid[:, 0], middle, color=MAIN, linewidth=1.8, label="mean")
    if y is not None:
        targets = as_array(y)
        shown = (targets == model.classes_[1]).astype(float) if labels else targets.astype(float)
        ax.plot(inputs[:, 0], shown, "o", color=INK, alpha=0.7, markersize=3.6, markeredgewidth=0, label="data")
    ax.margins(x=0.02)
    side_labels(ax, float(grid[-1, 0]), names)
    note = f"log evidence {model.log_evidence_:.4g}"
    return finish(ax, title=titled(title, finding), note=note, x=x_label, y=label)
