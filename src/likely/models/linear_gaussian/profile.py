"""The likelihood of factor analysis as a function of the noise alone, and its maximum.

With S the covariance of the rows, Λ and U the eigenvalues (largest first) and eigenvectors of Ψ^(−½) S Ψ^(−½), the best
W for a given Ψ is known (Lawley), and leaves

    W = Ψ^½ U (Λ − I)^½  over the k largest λ,      −2/n log p = log|2πΨ| + Σ_{i ≤ k} (1 + log λᵢ) + Σ_{i > k} λᵢ

EM creeps where a noise variance is small; L-BFGS on log ψ does not. Several starts guard against lower tops.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

__all__ = ["best_noise", "loadings_of"]

STARTS = 8
"""Of which all but three are random."""

NEWTON = 5
"""Steps that double the digits of the end."""


def best_noise(covariance: np.ndarray, factors: int, noise: np.ndarray, floor: float) -> np.ndarray:
    """ψ of greatest likelihood, of columns with variance 1 and no ψ below `floor`, from `noise` and other starts.

    >>> best_noise(np.array([[1.0, 0.6, 0.6], [0.6, 1.0, 0.6], [0.6, 0.6, 1.0]]), 1, np.ones(3), 1e-3).round(4)
    array([0.4, 0.4, 0.4])
    """
    d = len(covariance)
    random = np.random.default_rng(0)  # the same starts for every seed: the optimum is not a matter of chance
    unexplained = 1 / np.diag(np.linalg.pinv(covariance))  # of each column, by all others (Jöreskog's start)
    starts = [noise, (1 - 0.5 * factors / d) * unexplained, np.full(d, 0.5)]
    starts += [random.uniform(floor, 1.0, d) for _ in range(STARTS - len(starts))]
    bounds = [(np.log(floor), 0.0)] * d
    options = {"maxiter": 1_000, "ftol": 1e-14, "gtol": 1e-9}

    def climb(start: np.ndarray) -> tuple[float, np.ndarray]:
        origin = np.log(np.clip(start, floor, 1.0))
        end = minimize(_cost, origin, (covariance, factors), "L-BFGS-B", True, bounds=bounds, options=options)
        return float(end.fun), end.x

    _, point = min((climb(start) for start in starts), key=lambda end: end[0])
    return np.exp(_settled(point, covariance, factors, floor))


def loadings_of(covariance: np.ndarray, factors: int, noise: np.ndarray) -> np.ndarray:
    """The best W (d, k) for this ψ."""
    values, vectors = _scaled(covariance, noise)
    kept = slice(None, -factors - 1, -1)
    return np.sqrt(noise)[:, None] * vectors[:, kept] * np.sqrt(np.maximum(values[kept] - 1, 0.0))


def _cost(log_noise: np.ndarray, covariance: np.ndarray, factors: int) -> tuple[float, np.ndarray]:
    """−2/n log p without its constant, and its gradient in log ψ: Σ (1 − λᵢ) uᵢ² over the λ that no factor explains."""
    values, vectors = _scaled(covariance, np.exp(log_noise))
    rest = _unexplained(values, factors)
    value = log_noise.sum() + (1 + np.log(values[~rest])).sum() + values[rest].sum()
    return float(value), vectors[:, rest] ** 2 @ (1 - values[rest])


def _curvature(log_noise: np.ndarray, covariance: np.ndarray, factors: int) -> np.ndarray:
    """The Hessian of the cost in log ψ: how λ and u move with ψ (perturbation of eigenvectors)."""
    values, vectors = _scaled(covariance, np.exp(log_noise))
    rest = _unexplained(values, factors)
    small, plane = values[rest], vectors[:, rest]
    hessian = (plane @ plane.T) * ((plane * small) @ plane.T)
    for value, vector in zip(values[~rest], vectors[:, ~rest].T, strict=True):
        apart = np.maximum(value - small, 1e-12 * value)
        moved = (plane * ((1 - small) * (value + small) / apart)) @ plane.T
        hessian += moved * np.outer(vector, vector)
    return hessian


def _settled(point: np.ndarray, covariance: np.ndarray, factors: int, floor: float) -> np.ndarray:
    """The root of the gradient nearby, by Newton: the cost itself tells ψ apart to half of its digits only."""
    low = np.log(floor)
    value, gradient = _cost(point, covariance, factors)
    free = (point > low) & (point < 0) | (point <= low) & (gradient < 0)
    for _ in range(NEWTON):
        step = np.zeros(len(point))
        hessian = _curvature(point, covariance, factors)[np.ix_(free, free)]
        step[free] = np.linalg.lstsq(hessian, gradient[free])[0]
        moved = np.clip(point - step, low, 0.0)
        height, after = _cost(moved, covariance, factors)
        closer = np.abs(after[free]).max(initial=0.0) < np.abs(gradient[free]).max(initial=0.0)
        if not closer or height > value + 1e-12 * abs(value):
            break
        point, gradient = moved, after
    return point


def _unexplained(values: np.ndarray, factors: int) -> np.ndarray:
    """Which λ, of those in rising order, have no factor: all but the k largest, and those up to 1."""
    return (np.arange(len(values)) < len(values) - factors) | (values <= 1)


def _scaled(covariance: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(noise)
    return eigh(covariance / np.outer(root, root))
