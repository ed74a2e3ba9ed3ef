"""k-means, 20 clusters of 200,000 × 16 in float64, from the same centres, against scikit-learn, whose engine it is."""

from __future__ import annotations

import numpy as np
from sklearn import cluster

from likely import KMeans

from .gaussian_mixture import clouds
from .timing import Result, compare, interleave, show

__all__ = ["run"]

ROWS, COLUMNS, CLUSTERS, STEPS = 200_000, 16, 20, 30


def run(repeats: int = 5) -> list[Result]:
    x, _ = clouds(ROWS, COLUMNS, CLUSTERS)
    first = x[np.random.default_rng(1).choice(ROWS, CLUSTERS, replace=False)]

    def likely_fit() -> tuple[float, int]:
        model = KMeans(CLUSTERS, init=first, max_iter=STEPS, tol=0.0).fit(x)
        return model.inertia_, model.n_iter_

    def sklearn_fit() -> tuple[float, int]:
        model = cluster.KMeans(CLUSTERS, init=first, n_init=1, max_iter=STEPS, tol=0.0).fit(x)
        return float(model.inertia_), model.n_iter_

    def quality(mine: tuple[float, int], other: tuple[float, int]) -> tuple[str, bool]:
        apart = abs(mine[0] / other[0] - 1)
        return f"made data: {mine[1]} and {other[1]} steps, inertia {apart:.1e} apart", apart <= 1e-9

    timed = interleave({"likely": likely_fit, "scikit-learn KMeans": sklearn_fit}, repeats)
    return compare("kmeans", timed, quality, {"scikit-learn KMeans": 1.05})


if __name__ == "__main__":
    show(run())
