"""Least squares of 1,000,000 × 50 in float64, against scikit-learn and against one pass over the data."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression, Ridge

from likely import Regressor

from .coefficients import flat
from .datasets import numbers
from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, COLUMNS = 1_000_000, 50


def run(repeats: int = 5) -> list[Result]:
    x, y = numbers(ROWS, COLUMNS)

    def likely_fit() -> np.ndarray:
        layer = Regressor().fit(x, y).posterior_.module.linear
        return flat(layer.weight.numpy(), layer.bias.numpy())

    def sklearn_fit() -> np.ndarray:
        model = LinearRegression().fit(x, y)
        return flat(model.coef_, model.intercept_)

    def ridge_fit() -> np.ndarray:
        model = Ridge(alpha=0.0, solver="cholesky").fit(x, y)
        return flat(model.coef_, model.intercept_)

    def normal_equations() -> np.ndarray:
        mean, level = x.mean(0), y.mean()
        gram, cross = x.T @ x - ROWS * np.outer(mean, mean), x.T @ y - ROWS * level * mean
        weight = np.linalg.solve(gram, cross)
        return flat(weight, level - mean @ weight)

    def quality(mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
        apart = float(np.abs(mine - other).max() / np.abs(other).max())
        return f"made data: coefficients {apart:.1e} apart", apart <= 1e-9

    calls = {
        "likely": likely_fit,
        "scikit-learn LinearRegression": sklearn_fit,
        "scikit-learn Ridge by Cholesky": ridge_fit,
        "normal equations in NumPy, unchecked (the limit)": normal_equations,
    }
    return compare("least_squares", interleave(calls, repeats), quality, {"scikit-learn LinearRegression": 1.0})


if __name__ == "__main__":
    show(run())
