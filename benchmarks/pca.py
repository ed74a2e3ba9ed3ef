"""PCA of 100,000 × 50 to 10 components and factor analysis with 5 factors, in float64, against scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import PCA as ScikitPCA
from sklearn.decomposition import FactorAnalysis as ScikitFactorAnalysis

from likely import PCA, FactorAnalysis
from likely.inference import EM

from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, COLUMNS, COMPONENTS, FACTORS = 100_000, 50, 10, 5


def run(repeats: int = 5) -> list[Result]:
    return [*principal(repeats), *factors(repeats)]


def principal(repeats: int) -> list[Result]:
    """Fit and transform."""
    random = np.random.default_rng(0)
    falling = 3 * 0.9 ** np.arange(COLUMNS)
    x = (random.normal(size=(ROWS, COLUMNS)) * falling) @ np.linalg.qr(random.normal(size=(COLUMNS, COLUMNS)))[0]

    def likely_fit() -> np.ndarray:
        return PCA(COMPONENTS).fit(x).transform(x)

    def sklearn_fit() -> np.ndarray:
        return ScikitPCA(COMPONENTS, svd_solver="covariance_eigh").fit(x).transform(x)

    def quality(mine: np.ndarray, other: np.ndarray) -> tuple[str, bool]:
        apart = float(np.abs(mine - other).max() / np.abs(other).max())
        return f"made data: scores {apart:.1e} apart", apart <= 1e-9

    peer = "scikit-learn PCA (covariance_eigh)"
    return compare("pca", interleave({"likely": likely_fit, peer: sklearn_fit}, repeats), quality, {peer: 1.1})


def factors(repeats: int) -> list[Result]:
    """To the same likelihood: each side at the tolerance that brings it within 1e-6 per row of the optimum."""
    random = np.random.default_rng(1)
    loadings = random.normal(size=(COLUMNS, FACTORS))
    noise = random.uniform(0.5, 2.0, COLUMNS)
    x = random.normal(size=(ROWS // 5, FACTORS)) @ loadings.T + noise * random.normal(size=(ROWS // 5, COLUMNS))

    def likely_fit() -> float:
        return FactorAnalysis(FACTORS, inference=EM(max_iter=5000, tol=1e-8)).fit(x).score(x)

    def sklearn_fit() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ScikitFactorAnalysis(FACTORS, tol=1e-3, max_iter=5000).fit(x).score(x)

    def quality(mine: float, other: float) -> tuple[str, bool]:
        return f"made data: log-likelihood a row {mine - other:+.1e}", mine - other >= -1e-6

    peer = "scikit-learn FactorAnalysis"
    timed = interleave({"likely": likely_fit, peer: sklearn_fit}, repeats)
    return compare("factor_analysis", timed, quality, {peer: 1.0})


if __name__ == "__main__":
    show(run())
