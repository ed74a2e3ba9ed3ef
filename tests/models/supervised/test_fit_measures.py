"""Deviance and dispersion of linear models: those of statsmodels' generalised linear models."""

import numpy as np
import pytest
import statsmodels.api as sm

from likely import Classifier, Regressor
from likely.likelihoods import Binomial, Gamma, LogNormal, NegativeBinomial, Normal, Poisson

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


def test_gamma_and_negative_binomial_are_generalised_linear_models():
    y = RNG.gamma(2.0, np.exp(0.3 * X[:, 0]))
    expected = sm.GLM(y, WITH_ONE, family=sm.families.Gamma(sm.families.links.Log())).fit(tol=1e-12)
    for likelihood in (Gamma(), Gamma(3.0)):  # φ is no part of either number
        facts = Regressor(likelihood).fit(X, y).summary(X, y).facts
        assert facts["deviance"] == pytest.approx(expected.deviance, rel=1e-6)
        assert facts["dispersion"] == pytest.approx(expected.pearson_chi2 / expected.df_resid, rel=1e-6)
    counts = RNG.negative_binomial(2, 2 / (2 + np.exp(0.4 * X[:, 0])))
    model = Regressor(NegativeBinomial()).fit(X, counts)
    family = sm.families.NegativeBinomial(alpha=model.constants_["dispersion"])
    expected = sm.GLM(counts, WITH_ONE, family=family).fit(tol=1e-12)
    facts = model.summary(X, counts).facts
    assert facts["deviance"] == pytest.approx(expected.deviance, rel=1e-6)
    assert facts["dispersion"] == pytest.approx(expected.pearson_chi2 / expected.df_resid, rel=1e-6)


def test_successes_among_trials_are_those_of_statsmodels():
    trials = 12
    hits = RNG.binomial(trials, 1 / (1 + np.exp(-0.5 * X[:, 1])))
    expected = sm.GLM(np.column_stack([hits, trials - hits]), WITH_ONE, family=sm.families.Binomial()).fit(tol=1e-12)
    facts = Regressor(Binomial(trials)).fit(X, hits).summary(X, hits).facts
    assert facts["deviance"] == pytest.approx(expected.deviance, rel=1e-6)
    assert facts["dispersion"] == pytest.approx(expected.pearson_chi2 / expected.df_resid, rel=1e-6)


def test_a_lognormal_is_a_normal_of_the_logarithm():
    own = Regressor(LogNormal()).fit(X, np.exp(Y)).summary(X, np.exp(Y)).facts
    normal = Regressor().fit(X, Y).summary(X, Y).facts
    for name in ("deviance", "dispersion"):
        assert own[name] == pytest.approx(normal[name], rel=1e-6)


def test_collinear_columns_leave_the_dispersion_as_it_is():
    doubled = X[:, [0, 1, 0]]
    facts = Regressor(Poisson()).fit(doubled, COUNTS).summary(doubled, COUNTS).facts
    assert facts["dispersion"] == pytest.approx(
        Regressor(Poisson()).fit(X, COUNTS).summary(X, COUNTS).facts["dispersion"], rel=1e-6
    )


def test_scatter_that_depends_on_x_has_no_deviance():
    facts = Regressor(Normal(scale="input")).fit(X, Y).summary(X, Y).facts
    assert "deviance" not in facts
    assert "dispersion" not in facts
