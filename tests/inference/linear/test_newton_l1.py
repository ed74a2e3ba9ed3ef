"""Newton with L1 terms: the optimality conditions, and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression
from tests.inference.linear.test_newton import coefficients, targets

from likely import Classifier, Regressor
from likely.inference import Newton
from likely.likelihoods import Normal, Poisson
from likely.priors import ElasticNet as ElasticNetPrior
from likely.priors import Laplace, PerLayer
from likely.priors import Normal as NormalPrior


# --- L1 -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("C", [0.02, 0.1, 1.0])
def test_laplace_prior_meets_the_l1_optimality_conditions(C, rng):
    X = rng.normal(size=(60, 8))
    y = rng.binomial(1, expit(X[:, 0] - X[:, 1]))
    theta = coefficients(Classifier(prior=Laplace(scale=C), inference=Newton()).fit(X, y))[0]
    gradient = X.T @ (expit(X @ theta[:-1] + theta[-1]) - y)
    active = theta[:-1] != 0
    np.testing.assert_allclose(gradient[active], -np.sign(theta[:-1][active]) / C, atol=1e-7)
    assert (np.abs(gradient[~active]) <= 1 / C + 1e-7).all()
    assert C == 1.0 or not active.all()


def test_laplace_prior_is_scikit_learns_l1(rng):
    X = rng.normal(size=(60, 8))
    y = rng.binomial(1, expit(X[:, 0] - X[:, 1]))
    theta = coefficients(Classifier(prior=Laplace(scale=0.3), inference=Newton()).fit(X, y))[0]
    peer = LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(theta, [*peer.coef_[0], peer.intercept_[0]], atol=1e-6)
    np.testing.assert_array_equal(theta[:-1] == 0, peer.coef_[0] == 0)
    assert (theta == 0).any()


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.02, 0.001])
def test_the_lasso_path_is_scikit_learns(alpha, rng):
    X = rng.normal(size=(50, 10)) + 1.0
    y = 2 * X[:, 0] - X[:, 3] + 0.3 * rng.normal(size=50)
    model = Regressor(Normal(scale=1.0), prior=Laplace(scale=1 / (50 * alpha)), inference=Newton()).fit(X, y)
    peer = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, y)
    theta = coefficients(model)[0]
    np.testing.assert_allclose(theta, [*peer.coef_, peer.intercept_], atol=1e-6)
    np.testing.assert_array_equal(theta[:-1] == 0, np.abs(peer.coef_) < 1e-9)


@pytest.mark.parametrize("l1_ratio", [0.2, 0.9])
def test_elastic_net_is_scikit_learns(l1_ratio, rng):
    X = rng.normal(size=(50, 10))
    y = 2 * X[:, 0] - X[:, 3] + 0.3 * rng.normal(size=50)
    prior = ElasticNetPrior(l1=50 * 0.2 * l1_ratio, l2=50 * 0.2 * (1 - l1_ratio))
    theta = coefficients(Regressor(Normal(scale=1.0), prior=prior, inference=Newton()).fit(X, y))[0]
    peer = ElasticNet(alpha=0.2, l1_ratio=l1_ratio, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(theta, [*peer.coef_, peer.intercept_], atol=1e-6)


def test_a_strong_laplace_prior_leaves_only_the_bias(rng, X):
    y = targets(rng, X, "poisson")
    theta = coefficients(Regressor(Poisson(), prior=Laplace(scale=1e-4), inference=Newton()).fit(X, y))[0]
    np.testing.assert_array_equal(theta[:-1], 0)
    assert theta[-1] == pytest.approx(np.log(y.mean()), abs=1e-9)


def test_a_prior_can_differ_by_parameter(rng, X):
    y = targets(rng, X, "poisson")
    layered = Regressor(Poisson(), prior=PerLayer({"weight": NormalPrior(0.3)}), inference=Newton()).fit(X, y)
    plain = Regressor(Poisson(), prior=NormalPrior(0.3), inference=Newton()).fit(X, y)
    np.testing.assert_allclose(coefficients(layered), coefficients(plain), atol=1e-10)
