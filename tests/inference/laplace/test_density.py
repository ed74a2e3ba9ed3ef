"""Laplace's approximation of a density: exact where the posterior is normal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely import PCA, FactorAnalysis, GaussianMixture
from likely.core.errors import ApproximationWarning, SpecError
from likely.inference import MAP, Laplace, Problem, RowDensity
from likely.inference.dataset import Dataset
from likely.priors import Flat, Normal

ROWS = torch.tensor([[0.5], [1.5], [2.5], [-0.5]], dtype=torch.float64)


class Mean(torch.nn.Module):
    """x ~ Normal(mean, 1); with `idle`, a parameter that nothing depends on."""

    def __init__(self, idle=False):
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(1, 1, dtype=torch.float64))
        self.idle = torch.nn.Parameter(torch.zeros(1, 1, dtype=torch.float64)) if idle else None

    def forward(self, x):
        value = -0.5 * (x[:, 0] - self.mean[0]).square() - 0.5 * math.log(2 * math.pi)
        return value if self.idle is None else value + 0 * self.idle[0]


def problem(prior, idle=False, seed=0):
    data = Dataset(ROWS, None, None, torch.float64)
    return Problem(lambda seed: Mean(idle), RowDensity("Mean"), prior, data, seed=seed)


def test_it_is_the_exact_posterior_and_evidence_of_a_normal_mean(seed):
    """Precision 4 + 1; evidence that of the joint normal. Of 4,000 draws the mean is within 5 standard errors, and the
    standard deviation within 6 %, which are 5.4 of 1/√8,000: a false alarm in 1 of 10⁶ seeds.
    """
    posterior = Laplace(draws=4000).fit(problem(Normal(1.0), seed=seed))
    mean = posterior.parameters["mean"].flatten()
    np.testing.assert_allclose(float(mean.std()), 5**-0.5, rtol=0.06)
    assert abs(float(mean.mean()) - 0.8) < 5 * (5 * 4000) ** -0.5
    covariance = torch.eye(4, dtype=torch.float64) + 1.0
    joint = torch.distributions.MultivariateNormal(torch.zeros(4, dtype=torch.float64), covariance)
    np.testing.assert_allclose(posterior.info["log_evidence"], float(joint.log_prob(ROWS[:, 0])), rtol=1e-6)


def test_a_direction_that_nothing_holds_is_named():
    with pytest.warns(ApproximationWarning, match="determine 1 of 2 directions"):
        posterior = Laplace(draws=5).fit(problem(Flat(), idle=True))
    assert not posterior.parameters["idle"].any()


def test_a_density_has_no_layers_to_factorise():
    with pytest.raises(SpecError, match='Mean has no layers to factorise; use covariance="full" or "diagonal"'):
        Laplace(covariance="kronecker").fit(problem(Normal(1.0)))


@pytest.mark.parametrize(
    "make",
    [
        lambda inference: GaussianMixture(1, inference=inference, random_state=0),
        lambda inference: FactorAnalysis(1, inference=inference, random_state=0),
        lambda inference: PCA(1, inference=inference, random_state=0),
    ],
    ids=["GaussianMixture", "FactorAnalysis", "PCA"],
)
def test_weights_are_repeats_draw_by_draw(make, rng):
    """Where curvatures are alike, rounding turns the eigenvectors: the draws must not turn with them."""
    X = rng.normal(size=(30, 3))
    weight = np.r_[np.full(6, 2), np.ones(24)]
    inference = Laplace(by=MAP("lbfgs", epochs=300, batch_size=None))
    weighted = make(inference).fit(X, sample_weight=weight)
    repeated = make(inference).fit(np.concatenate([X, X[:6]]))
    np.testing.assert_allclose(weighted.log_prob(X), repeated.log_prob(X), rtol=0, atol=1e-3)
