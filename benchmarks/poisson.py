"""Poisson regression of 100,000 × 50 in float64, with a flat and with a normal prior, against the best solvers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import statsmodels.api as sm
from glum import GeneralizedLinearRegressor
from sklearn.linear_model import PoissonRegressor

from likely import Regressor
from likely.likelihoods import Poisson
from likely.priors import Flat, Normal

from .coefficients import Solver, flat, solvers
from .datasets import counts
from .timing import Result, show

__all__ = ["run"]

ROWS, COLUMNS, SCALE = 100_000, 50, 0.1


def run(repeats: int = 5) -> list[Result]:
    x, y = counts(ROWS, COLUMNS)
    designed = sm.add_constant(x, prepend=False)

    def likely_fit(prior: Any) -> np.ndarray:
        model = Regressor(Poisson(), prior=prior).fit(x, y).posterior_.module.linear
        return flat(model.weight.numpy(), model.bias.numpy())

    def sklearn_fit(solver: str, alpha: float, tol: float) -> np.ndarray:
        model = PoissonRegressor(alpha=alpha, solver=solver, tol=tol, max_iter=1000).fit(x, y)
        return flat(model.coef_, model.intercept_)

    def glum_fit(alpha: float, tol: float) -> np.ndarray:
        model = GeneralizedLinearRegressor(family="poisson", alpha=alpha, l1_ratio=0, gradient_tol=tol).fit(x, y)
        return flat(model.coef_, model.intercept_)

    def statsmodels_fit(tol: float) -> np.ndarray:
        return sm.GLM(y, designed, family=sm.families.Poisson()).fit(tol=tol).params

    results = []
    for name, prior, alpha in (("flat", Flat(), 0.0), ("L2", Normal(SCALE), 1 / (SCALE**2 * ROWS))):
        names = ("lbfgs", "newton-cholesky")
        peers: dict[str, Solver] = {f"scikit-learn {s}": partial(sklearn_fit, s, alpha) for s in names}
        peers["glum"] = partial(glum_fit, alpha)
        if name == "flat":  # statsmodels has no ridge for it
            peers["statsmodels GLM"] = statsmodels_fit
        reference = sklearn_fit("newton-cholesky", alpha, 1e-13)
        results += solvers(f"poisson, {name}", partial(likely_fit, prior), peers, reference, repeats, "made data")
    return results


if __name__ == "__main__":
    show(run())
