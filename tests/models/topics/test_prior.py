"""The Dirichlet prior of some documents, against scipy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, psi

from likely.models.topics.prior import inverse_digamma, prior_of_log_theta


def test_the_inverse_of_digamma_is_its_inverse():
    x = np.geomspace(1e-6, 1e8, 57)
    np.testing.assert_allclose(inverse_digamma(psi(x)), x, rtol=1e-8)


def value(prior, mean_log):
    """The log-likelihood of α per document."""
    return gammaln(prior.sum()) - gammaln(prior).sum() + (prior - 1) @ mean_log


def test_the_prior_is_the_one_of_largest_likelihood():
    mean_log = np.log(np.random.default_rng(0).dirichlet([0.4, 1.0, 3.0], 50)).mean(0)
    prior = prior_of_log_theta(mean_log, np.ones(3), steps=600)
    np.testing.assert_allclose(psi(prior) - psi(prior.sum()), mean_log, rtol=1e-8)
    best = minimize(lambda log: -value(np.exp(log), mean_log), np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(prior, np.exp(best.x), rtol=1e-4)


def test_no_step_lowers_the_likelihood():
    mean_log = np.log(np.random.default_rng(1).dirichlet([0.1, 0.2, 5.0], 20)).mean(0)
    prior, values = np.full(3, 10.0), []
    for _ in range(20):
        values.append(value(prior, mean_log))
        prior = prior_of_log_theta(mean_log, prior, steps=1)
    assert (np.diff(values) > -1e-10).all()
    assert values[-1] > values[0] + 0.1
