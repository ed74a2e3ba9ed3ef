"""Logistic regression of 100,000 × 50 in float64, with a flat and with a normal prior, against the best solvers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import statsmodels.api as sm
from glum import GeneralizedLinearRegressor
from sklearn.linear_model import LogisticRegression

from likely import Classifier
from likely.priors import Flat, Normal

from .coefficients import Solver, flat, solvers
from .datasets import labels
from .timing import Result, show

__all__ = ["run"]

ROWS, COLUMNS, SCALE = 100_000, 50, 0.1


def run(repeats: int = 5) -> list[Result]:
    x, y = labels(ROWS, COLUMNS)
    designed = sm.add_constant(x, prepend=False)

    def likely_fit(prior: Any) -> np.ndarray:
        model = Classifier(prior=prior).fit(x, y).posterior_.module.linear
        return flat(model.weight.numpy(), model.bias.numpy())

    def sklearn_fit(solver: str, c: float, tol: float) -> np.ndarray:
        model = LogisticRegression(C=c, solver=solver, tol=tol, max_iter=1000).fit(x, y)
        return flat(model.coef_, model.intercept_)

    def glum_fit(alpha: float, tol: float) -> np.ndarray:
        model = GeneralizedLinearRegressor(family="binomial", alpha=alpha, l1_ratio=0, gradient_tol=tol).fit(x, y)
        return flat(model.coef_, model.intercept_)

    def statsmodels_fit(tol: float) -> np.ndarray:
        return sm.Logit(y, designed).fit(method="newton", tol=tol, disp=False).params

    def statsmodels_glm(tol: float) -> np.ndarray:
        return sm.GLM(y, designed, family=sm.families.Binomial()).fit(tol=tol).params

    results = []
    for name, prior, c in (("flat", Flat(), np.inf), ("L2", Normal(SCALE), SCALE**2)):
        names = ("lbfgs", "newton-cholesky", "newton-cg")
        peers: dict[str, Solver] = {f"scikit-learn {s}": partial(sklearn_fit, s, c) for s in names}
        peers["glum"] = partial(glum_fit, 0.0 if name == "flat" else 1 / (c * ROWS))
        if name == "flat":  # statsmodels has no ridge for these
            peers |= {"statsmodels Logit": statsmodels_fit, "statsmodels GLM": statsmodels_glm}
        reference = sklearn_fit("newton-cholesky", c, 1e-13)
        results += solvers(f"logistic, {name}", partial(likely_fit, prior), peers, reference, repeats, "made data")
    return results


if __name__ == "__main__":
    show(run())
