"""L1 logistic regression of one-hot columns (every group collinear with the intercept), against scikit-learn's solvers.

Coefficients are not unique there, so solvers are compared by the objective Σ log(1 + exp(−yη)) + ‖w‖₁/C: each runs at
the loosest tolerance that comes within 1e-6 of the best, relative to it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression

from likely import Classifier
from likely.priors import Laplace

from .coefficients import LADDER
from .timing import Result, compare, interleave, show

__all__ = ["run"]

EXACT = 1e-6
ROWS, LEVELS = 5_000, (3, 4, 5) * 4


def one_hot(rows: int, levels: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Categories as columns of 0 and 1, and labels that half of them matter for."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.eye(count)[rng.integers(0, count, rows)] for count in levels], 1)
    weight = rng.normal(size=x.shape[1]) * (rng.random(x.shape[1]) < 0.5)
    return x, (rng.random(rows) < 1 / (1 + np.exp(-x @ weight))).astype(int)


def run(repeats: int = 5) -> list[Result]:
    return [line for c in (1.0, 10.0) for line in one(c, repeats)]


def one(c: float, repeats: int) -> list[Result]:
    """One strength of the penalty."""
    x, y = one_hot(ROWS, LEVELS)

    def objective(weight: np.ndarray, bias: np.ndarray) -> float:
        w, b = np.ravel(weight), float(np.ravel(bias)[0])
        return float(np.logaddexp(0, -(2 * y - 1) * (x @ w + b)).sum() + np.abs(w).sum() / c)

    def likely_fit() -> float:
        model = Classifier(prior=Laplace(c)).fit(x, y)
        return objective(model.coef_, model.intercept_)

    def sklearn_fit(solver: str, tol: float) -> float:
        # liblinear penalises the intercept; a large scaling leaves next to nothing of that
        options = {"intercept_scaling": 1e3} if solver == "liblinear" else {}
        model = LogisticRegression(C=c, l1_ratio=1.0, solver=solver, tol=tol, max_iter=20_000, **options).fit(x, y)
        return objective(model.coef_, model.intercept_)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = min(likely_fit(), sklearn_fit("saga", 1e-9))
        calls: dict[str, Callable[[], float]] = {"likely": likely_fit}
        for solver in ("liblinear", "saga"):
            enough = (tol for tol in LADDER if sklearn_fit(solver, tol) <= best * (1 + EXACT))
            tol = next(enough, LADDER[-1])
            calls[f"scikit-learn {solver}, tol {tol:g}"] = lambda solver=solver, tol=tol: sklearn_fit(solver, tol)
        timed = interleave(calls, repeats)

    def quality(mine: float, other: float) -> tuple[str, bool]:
        words = f"made data: objective above the best by {mine / best - 1:.1e} and {other / best - 1:.1e}, relatively"
        return words, mine <= best * (1 + EXACT)

    targets = {name: 2.0 if "liblinear" in name else 1.0 for name in timed}
    return compare(f"L1 logistic, {len(LEVELS)} one-hot groups, C = {c:g}", timed, quality, targets)


if __name__ == "__main__":
    show(run())
