"""Deviance and dispersion of linear models: those of statsmodels' generalised linear models."""

import numpy as np
import pytest
import statsmodels.api as sm

from likely import Classifier, Regressor
from likely.likelihoods import Gamma, Poisson

RNG = np.random.default_rng(8)
X = RNG.normal(size=(150, 2))
WITH_ONE = np.column_stack([X, np.ones(len(X))])
Y = X @ [1.0, -0.5] + RNG.normal(size=150)
LABELS = (Y > 0).astype(int)
LABELS[:20] = 1 - LABELS[:20]
COUNTS = RNG.poisson(np.exp(0.4 * X[:, 0]))


def test_deviance_and_dispersion_are_those_of_generalised_linear_models():
    for model, y, family in [
        (Regressor(Poisson()), COUNTS, sm.families.Poisson()),
        (Classifier(), LABELS, sm.families.Binomial()),
        (Regressor(), Y, sm.families.Gaussian()),
    ]:
        expected = sm.GLM(y, WITH_ONE, family=family).fit(tol=1e-12)
        facts = model.fit(X, y).summary(X, y).facts
        assert facts["deviance"] == pytest.approx(expected.deviance, rel=1e-7)
        assert facts["dispersion"] == pytest.approx(expected.pearson_chi2 / expected.df_resid, rel=1e-6)


def test_the_deviance_of_a_gamma_is_scaled_by_its_concentration():
    y = RNG.gamma(2.0, np.exp(0.3 * X[:, 0]))
    model = Regressor(Gamma()).fit(X, y)
    expected = sm.GLM(y, WITH_ONE, family=sm.families.Gamma(sm.families.links.Log())).fit(tol=1e-12)
    concentration = float(model.posterior_.parameters["shared"].exp())
    assert model.summary(X, y).facts["deviance"] == pytest.approx(concentration * expected.deviance, rel=1e-5)
