"""Randomised quantile residuals: standard normal for any likelihood, if the model is right.

r = Φ⁻¹(u),   u = F(y | x)  for numbers,   u uniform between F(y − 1) and F(y) for counts and labels
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import kstest, norm

from ..core.errors import DataError
from ..probability.quantiles import cdf
from .protocol import as_array, missing, need, opened
from .result import Result

__all__ = ["QuantileResiduals", "quantile_residuals"]

EDGE = 1e-15
"""A target further out than any number can tell has the residual of this probability, about 8."""


@dataclass(frozen=True)
class QuantileResiduals(Result):
    """The residual of each target, the mean that the model predicts there, and a test that they are standard normal.

    For labels `fitted` is the mean place of the class. `p_value` is that of Kolmogorov and Smirnov's test.
    """

    values: np.ndarray
    fitted: np.ndarray
    p_value: float

    def __str__(self) -> str:
        mean, spread = self.values.mean(), self.values.std()
        return (
            f"quantile residuals of {len(self.values)} targets: mean {mean:.2f}, standard deviation {spread:.2f}, "
            f"normality p = {self.p_value:.2g}"
        )


def quantile_residuals(model: Any, X: Any, y: Any, *, random_state: Any = 0, **beside: Any) -> QuantileResiduals:
    """Residuals that are standard normal if p(y | x) is right, whatever the likelihood and the network.

    Rows that the model was fitted on have residuals a little too small; with many more rows than parameters the
    difference is slight.

    Parameters
    ----------
    model : fitted, with `predict_dist`. X : the rows it takes. y : their targets; a missing one has no residual.
    random_state : of the draws that spread the steps of discrete distributions.
    beside : what predictions take beside X: offset= and exposure=.

    Returns
    -------
    `QuantileResiduals`: `values`, one per known target, and `p_value` of a test that they are normal.

    See also
    --------
    plots.quantile_residuals : draws them. plots.residuals : actual − predicted.

    >>> from likely import Regressor
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> y = np.array([1.0, 3.0, 2.0, 4.0, 3.0, 6.0, 4.0, 7.0])
    >>> model = Regressor("normal(scale=1.0)").fit(X, y)
    >>> result = quantile_residuals(model, X, y)
    >>> bool(np.allclose(result.values, y - model.predict(X)))
    True
    """
    model, X = opened(model, X)
    need(model, ("predict_dist",), "Quantile residuals")
    target = as_array(y)
    known = ~missing(model, target)
    if not known.any():
        raise DataError("y has no target to compare with: every one is missing.")
    forecast = model.predict_dist(X, **beside)
    if forecast.event_shape:
        raise DataError("Quantile residuals need one number per target; for vectors look at one coordinate at a time.")
    place = _places(model, target, known)
    if place.shape != tuple(forecast.batch_shape):
        raise DataError(f"y has shape {place.shape}; the predictions are for {tuple(forecast.batch_shape)}.")
    lower, upper, mean = _edges(forecast, place)
    if lower is not None:
        upper = lower + np.random.default_rng(random_state).uniform(size=upper.shape) * (upper - lower)
    inside = np.clip(upper[known], EDGE, 1 - EDGE)
    return QuantileResiduals(norm.ppf(inside), mean[known], float(kstest(inside, "uniform").pvalue))


def _places(model: Any, target: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Numbers as they are, labels by their place among the classes; 1 where the target is missing."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return np.where(known, target, 1.0).astype(np.float64)
    place = {label: index for index, label in enumerate(np.asarray(classes).tolist())}
    labels = np.where(known, target, classes[0]).reshape(-1).tolist()
    strange = next((label for label in labels if label not in place), None)
    if strange is not None:
        raise DataError(f"y has the class {strange!r}, which the model does not know: {list(place)}.")
    return np.array([place[label] for label in labels], dtype=np.float64).reshape(target.shape)


@torch.no_grad()
def _edges(forecast: Any, place: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """F just below y (None for numbers, which have no steps), F at y, and the mean."""
    if isinstance(forecast, torch.distributions.Categorical):
        below = as_array(forecast.probs.cumsum(-1)).astype(np.float64)
        below = np.concatenate([np.zeros_like(below[..., :1]), below], -1)
        index = place.astype(int)[..., None]
        mean = as_array((forecast.probs * torch.arange(forecast.probs.shape[-1]).to(forecast.probs)).sum(-1))
        lower, upper = (np.take_along_axis(below, index + step, -1)[..., 0] for step in (0, 1))
        return lower, upper, mean
    value = torch.as_tensor(place, dtype=forecast.mean.dtype, device=forecast.mean.device)
    upper, mean = as_array(cdf(forecast, value)).astype(np.float64), as_array(forecast.mean)
    if not forecast.support.is_discrete:
        return None, upper, mean
    return upper - as_array(forecast.log_prob(value).exp()).astype(np.float64), upper, mean
