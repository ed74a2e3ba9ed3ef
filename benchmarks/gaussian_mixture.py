"""EM for 10 full Gaussians, 100,000 × 16 in float64, 20 steps from the same means, against scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn import mixture

from likely import GaussianMixture
from likely.inference import EM

from .timing import Result, compare, interleave, show

__all__ = ["clouds", "run"]

ROWS, COLUMNS, COMPONENTS, STEPS = 100_000, 16, 10, 20


def clouds(rows: int, columns: int, components: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Rows of overlapping Gaussians of different shapes, and their means."""
    random = np.random.default_rng(0)
    means = 0.4 * random.normal(size=(components, columns))
    shapes = 0.5 * random.normal(size=(components, columns, columns)) / np.sqrt(columns) + np.eye(columns)
    x = np.empty((rows, columns), dtype)
    for start in range(0, rows, 100_000):
        label = random.integers(components, size=min(100_000, rows - start))
        noise = random.normal(size=(len(label), columns))
        for k in range(components):
            own = label == k
            x[start : start + len(label)][own] = means[k] + noise[own] @ shapes[k]
    return x, means


def run(repeats: int = 3) -> list[Result]:
    x, means = clouds(ROWS, COLUMNS, COMPONENTS)
    first = means + 0.3 * np.random.default_rng(1).normal(size=means.shape)

    def likely_fit() -> tuple[float, int]:
        model = GaussianMixture(COMPONENTS, inference=EM(max_iter=STEPS, tol=0.0), means_init=first).fit(x)
        return model.log_likelihood_ / ROWS, model.n_iter_

    def sklearn_fit() -> tuple[float, int]:
        # with equal weights and unit covariances to begin with, it is spared its k-means; ours begins at nearest rows
        model = mixture.GaussianMixture(
            COMPONENTS,
            tol=0.0,
            max_iter=STEPS,
            means_init=first,
            weights_init=np.full(COMPONENTS, 1 / COMPONENTS),
            precisions_init=np.broadcast_to(np.eye(COLUMNS), (COMPONENTS, COLUMNS, COLUMNS)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 20 steps are not meant to converge
            model.fit(x)
        return float(model.lower_bound_), model.n_iter_

    def quality(mine: tuple[float, int], other: tuple[float, int]) -> tuple[str, bool]:
        words = f"made data: {mine[1]} and {other[1]} steps, log-likelihood {mine[0]:.4f} and {other[0]:.4f} a row"
        return words, mine[1] == other[1] and mine[0] >= other[0] - 0.01

    calls = {"likely": likely_fit, "scikit-learn GaussianMixture": sklearn_fit}
    timed = interleave(calls, repeats)
    return compare("gaussian_mixture", timed, quality, {"scikit-learn GaussianMixture": 1 / 1.5})


if __name__ == "__main__":
    show(run())
