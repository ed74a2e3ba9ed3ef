"""A Laplace posterior of a linear model is exact: its moments of η, its predictive and its draws are closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from likely import Classifier, Regressor, load, priors
from likely.inference import Laplace
from likely.likelihoods import Normal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
NEW = RNG.normal(size=(5, 2))
PRIOR = priors.Normal(0.5, biases=priors.Normal(0.5))
SIGMA = 0.7


def wide(x):
    return np.column_stack([x, np.ones(len(x))])


@pytest.fixture(scope="module")
def line():
    y = X @ [1.0, -2.0] + 0.3 + SIGMA * RNG.normal(size=40)
    model = Regressor(Normal(SIGMA), prior=PRIOR, inference=Laplace("full"), random_state=0)
    return model.fit(X, y), np.linalg.inv(wide(X).T @ wide(X) / SIGMA**2 + 4 * np.eye(3))


def test_moments_of_eta_are_those_of_the_conjugate_posterior(line):
    model, covariance = line
    variance = np.einsum("ni,ij,nj->n", wide(NEW), covariance, wide(NEW))
    mean, spread = model.posterior_.eta_moments(torch.from_numpy(NEW))
    np.testing.assert_allclose(spread[:, 0, 0], variance, rtol=1e-4)
    predictive = model.predict_dist(NEW)
    np.testing.assert_allclose(predictive.mean, mean[:, 0], rtol=1e-5)
    np.testing.assert_allclose(predictive.variance, variance + SIGMA**2, rtol=1e-4)


def test_draws_are_members_with_the_covariance(line, seed):
    """10,000 draws: each correlation is off by less than 6·√2/√10,000, six standard errors (1 in 10⁸)."""
    model, covariance = line
    members = model.posterior_.draw(10_000, torch.Generator().manual_seed(seed)).parameters
    theta = torch.cat([members["network.weight"][:, 0], members["network.bias"]], 1).double().numpy()
    deviation = np.sqrt(covariance.diagonal())
    error = (np.cov(theta, rowvar=False) - covariance) / np.outer(deviation, deviation)
    assert np.abs(error).max() < 6 * 2**0.5 / 100


def test_probabilities_are_integrals_over_eta():
    model = Classifier(prior=PRIOR, inference=Laplace("full"), random_state=0).fit(X, X[:, 0] > 0.2)
    mean, covariance = model.posterior_.eta_moments(torch.from_numpy(NEW))
    for row, p in enumerate(model.predict_proba(NEW)[:, 1]):
        centre, scale = float(mean[row, 0]), float(covariance[row, 0, 0]) ** 0.5
        expected, _ = quad(
            lambda e, c=centre, s=scale: expit(e) * norm.pdf(e, c, s), centre - 9 * scale, centre + 9 * scale
        )
        assert p == pytest.approx(expected, rel=1e-4)


def test_the_covariance_is_saved_with_the_mean(line, tmp_path):
    model, _ = line
    model.save(tmp_path / "line.likely")
    again = load(tmp_path / "line.likely")
    for ours, kept in zip(
        again.posterior_.eta_moments(NEW_TENSOR), model.posterior_.eta_moments(NEW_TENSOR), strict=True
    ):
        torch.testing.assert_close(ours, kept)


NEW_TENSOR = torch.from_numpy(NEW)
