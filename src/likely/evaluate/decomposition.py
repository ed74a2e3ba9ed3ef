"""Where the error of a regressor comes from, over training sets D and new targets y = f(x) + ε.

E (y − f̂_D(x))²  =  (E f̂_D(x) − f(x))²  +  Var f̂_D(x)  +  Var ε
     error       =        bias²          +   variance    +  noise
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..core.errors import DataError
from .protocol import as_array
from .result import Result, plus_minus

__all__ = ["BiasVariance", "bias_variance"]


@dataclass(frozen=True)
class BiasVariance(Result):
    """The three parts, averaged over the points X, and the error measured on new targets there."""

    bias_squared: float
    variance: float
    noise: float
    error: float
    error_standard_error: float
    repeats: int

    @property
    def total(self) -> float:
        """bias² + variance + noise: what the measured error should be."""
        return self.bias_squared + self.variance + self.noise

    def __str__(self) -> str:
        parts = f"bias² {self.bias_squared:.4g} + variance {self.variance:.4g} + noise {self.noise:.4g}"
        return f"{parts} = {self.total:.4g}; measured {plus_minus(self.error, self.error_standard_error)}"


def bias_variance(
    model: Any,
    sample_data: Callable[[np.random.Generator], tuple[Any, Any]],
    truth: Callable[[Any], ArrayLike],
    X: Any,
    *,
    noise_variance: ArrayLike | None = None,
    repeats: int = 50,
    random_state: Any = None,
) -> BiasVariance:
    """Refit `model` on `repeats` training sets and take its error at the points X apart.

    `sample_data(rng)` draws a training set (X, y); `truth(X)` is f. `noise_variance` is Var ε, one number or one for
    each point; without it, it is estimated from the training sets. Bias² is freed of the variance of a finite number
    of repeats, so it may come out slightly below 0 for a model without bias.

    >>> from sklearn.linear_model import LinearRegression
    >>> def sample_data(rng):
    ...     X = rng.uniform(-1, 1, size=(20, 1))
    ...     return X, 3 * X[:, 0] + rng.normal(size=20)
    >>> result = bias_variance(LinearRegression(), sample_data, lambda X: 3 * X[:, 0], np.linspace(-1, 1, 9)[:, None],
    ...                        noise_variance=1.0, random_state=0)
    >>> result.bias_squared < 0.05, 0.05 < result.variance < 0.2, result.noise
    (True, True, 1.0)
    """
    if repeats < 2:
        raise DataError(f"repeats must be 2 or more, as there is no variance of one fit; found {repeats!r}.")
    rng = np.random.default_rng(random_state)
    target = np.asarray(truth(X), dtype=np.float64)
    predictions = np.empty((repeats, *target.shape))
    residuals = []
    for repeat in range(repeats):
        X_train, y_train = sample_data(rng)
        fitted = clone(model).fit(X_train, y_train)
        predictions[repeat] = as_array(fitted.predict(X)).reshape(target.shape)
        residuals.append(np.mean((as_array(y_train) - np.asarray(truth(X_train))) ** 2))
    spread = np.broadcast_to(np.mean(residuals) if noise_variance is None else noise_variance, target.shape)
    if (np.asarray(spread) < 0).any():
        raise DataError(f"noise_variance must be 0 or more; found {np.min(spread):g}.")
    noisy = target + np.sqrt(spread) * rng.standard_normal(predictions.shape)
    errors = ((noisy - predictions) ** 2).reshape(repeats, -1).mean(1)
    variance = predictions.var(0, ddof=1)
    bias_squared = (predictions.mean(0) - target) ** 2 - variance / repeats
    return BiasVariance(
        bias_squared=float(bias_squared.mean()),
        variance=float(variance.mean()),
        noise=float(np.mean(spread)),
        error=float(errors.mean()),
        error_standard_error=float(errors.std(ddof=1) / np.sqrt(repeats)),
        repeats=repeats,
    )
