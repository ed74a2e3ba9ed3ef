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

    value, point = min((climb(start) for start in starts), key=lambda end: end[0])
    before = _cost(np.log(noise), covariance, factors)[0]
    return np.exp(point) if value < before else noise


def loadings_of(covariance: np.ndarray, factors: int, noise: np.ndarray) -> np.ndarray:
    """The best W (d, k) for this ψ."""
    values, vectors = _scaled(covariance, noise)
    kept = slice(None, -factors - 1, -1)
    return np.sqrt(noise)[:, None] * vectors[:, kept] * np.sqrt(np.maximum(values[kept] - 1, 0.0))


def _cost(log_noise: np.ndarray, covariance: np.ndarray, factors: int) -> tuple[float, np.ndarray]:
    """−2/n log p without its constant, and its gradient in log ψ: ψ ⊙ diag(Σ⁻¹(Σ − S)Σ⁻¹), as W is the best one."""
    noise = np.exp(log_noise)
    values, _ = _scaled(covariance, noise)
    kept, rest = values[-factors:], values[:-factors]
    value = log_noise.sum() + np.where(kept > 1, 1 + np.log(np.maximum(kept, 1.0)), kept).sum() + rest.sum()
    loadings = loadings_of(covariance, factors, noise)
    precision = np.linalg.inv(loadings @ loadings.T + np.diag(noise))
    gradient = np.diag(precision) - np.einsum("ij,jk,ki->i", precision, covariance, precision)
    return float(value), noise * gradient


def _scaled(covariance: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    root = np.sqrt(noise)
    return eigh(covariance / np.outer(root, root))
