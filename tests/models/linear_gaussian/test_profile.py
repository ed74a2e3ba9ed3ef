"""The likelihood with the best loadings for each noise: its gradient, its top, and that of scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.decomposition import FactorAnalysis as Peer

from likely import FactorAnalysis
from likely.core.errors import LikelyWarning
from likely.models.linear_gaussian.profile import _cost, _curvature, best_noise, loadings_of


def nearly_heywood(seed):
    """A column or two with next to no noise of their own, in few rows."""
    rng = np.random.default_rng(seed)
    d, k, n = int(rng.integers(5, 9)), int(rng.integers(1, 3)), int(rng.integers(30, 300))
    noise = np.exp(rng.uniform(np.log(0.02), 0.0, d))
    noise[: rng.integers(1, 3)] = 10 ** rng.uniform(-4, -2)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + rng.normal(size=(n, d)) * np.sqrt(noise), k


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_differences(seed):
    X, k = nearly_heywood(seed)
    covariance, at = np.corrcoef(X.T), np.log(np.random.default_rng(seed).uniform(0.1, 0.9, X.shape[1]))
    numeric = approx_fprime(at, lambda point: _cost(point, covariance, k)[0], 1e-7)
    np.testing.assert_allclose(_cost(at, covariance, k)[1], numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_curvature_is_that_of_differences(seed):
    X, k = nearly_heywood(seed)
    covariance, at = np.corrcoef(X.T), np.log(np.random.default_rng(seed).uniform(0.1, 0.9, X.shape[1]))
    numeric = approx_fprime(at, lambda point: _cost(point, covariance, k)[1], 1e-7)
    hessian = _curvature(at, covariance, k)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5 * np.abs(hessian).max())


def test_the_top_is_found_to_the_last_digits():
    """Where the gradient is 0 but for rounding: L-BFGS alone, which looks at the cost, ends at about 1e-8."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) + rng.normal(size=(200, 6)) * rng.uniform(0.7, 1.0, 6)
    covariance = np.corrcoef(X.T)
    top = best_noise(covariance, 1, np.ones(6), 1e-3)
    np.testing.assert_allclose(_cost(np.log(top), covariance, 1)[1], 0, atol=1e-12)


def test_a_covariance_of_factors_is_taken_apart_exactly():
    loadings, noise = np.array([[0.8, 0.0], [0.7, 0.1], [0.6, -0.2], [0.1, 0.7], [0.0, 0.8], [-0.2, 0.6]]), None
    noise = 1 - (loadings**2).sum(1)
    covariance = loadings @ loadings.T + np.diag(noise)
    reached = best_noise(covariance, 2, np.ones(6), 1e-6)
    np.testing.assert_allclose(reached, noise, rtol=1e-4)
    own = loadings_of(covariance, 2, reached)
    np.testing.assert_allclose(own @ own.T + np.diag(reached), covariance, atol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_no_less_likely_than_scikit_learns_optimum(seed):
    X, k = nearly_heywood(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # Heywood cases say so
        model = FactorAnalysis(k, floor=1e-8, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = Peer(k, tol=1e-6, max_iter=3_000, svd_method="lapack").fit(X)
    ours, theirs = model.log_prob(X).sum(), peer.score_samples(X).sum()
    assert ours >= theirs - 1e-4 * len(X)
    assert model.log_likelihood_ == pytest.approx(ours, rel=1e-9, abs=1e-6)
    assert (np.diff(model.history_) >= -1e-9 * np.abs(model.history_).max()).all()
