from __future__ import annotations

import numpy as np
from numba import njit
from scipy.special import psi

from likely.models.topics.digamma import digamma, exp_digamma
from likely.models.topics.lanes import FAST
from likely.models.topics.prior import inverse_digamma, prior_of_log_theta

OPTIONS = FAST | {"cache": False}


@njit(**OPTIONS)
def both(x, plain, exponential):
    for i in range(len(x)):
        plain[i] = digamma(x[i])
        exponential[i] = exp_digamma(x[i])


def test_digamma_and_its_exponential_are_those_of_scipy():
    x = np.concatenate([np.geomspace(2e-3, 1e9, 20_001), np.linspace(0.5, 20, 10_001)])
    plain, exponential = np.empty_like(x), np.empty_like(x)
    both(x, plain, exponential)
    expected = psi(x)
    np.testing.assert_allclose(plain, expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(exponential, np.exp(expected), rtol=1e-12)


def test_compiled_loops_and_plain_calls_agree():
    x = np.array([0.01, 1.0, 1.4616321449683623, 30.0])
    plain, exponential = np.empty_like(x), np.empty_like(x)
    both(x, plain, exponential)
    np.testing.assert_allclose([digamma.py_func(v) for v in x], plain, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose([exp_digamma.py_func(v) for v in x], exponential, rtol=1e-12)


def test_what_underflows_stays_positive():
    assert 0 < exp_digamma(1e-5) < 1e-300


def test_inverse_digamma():
    x = np.geomspace(1e-4, 1e6, 1001)
    np.testing.assert_allclose(inverse_digamma(psi(x)), x, rtol=1e-9)


def test_the_best_prior_solves_its_equation_without_a_step_down():
    from scipy.special import gammaln

    log_theta = np.log(np.random.default_rng(0).dirichlet([0.3, 1.0, 4.0], size=500))
    mean = log_theta.mean(0)

    def likelihood(prior):
        return gammaln(prior.sum()) - gammaln(prior).sum() + (prior - 1) @ mean

    prior = np.ones(3)
    values = [likelihood(prior)]
    for _ in range(50):
        prior = prior_of_log_theta(mean, prior, steps=1)
        values.append(likelihood(prior))
    assert np.diff(values).min() >= -1e-12
    best = prior_of_log_theta(mean, prior, steps=2000)
    np.testing.assert_allclose(psi(best) - psi(best.sum()), mean, rtol=1e-9)
