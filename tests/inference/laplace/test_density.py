"""Laplace's approximation of a density: exact where the posterior is normal."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.core.errors import ApproximationWarning, SpecError
from likely.inference import Laplace, Problem, RowDensity
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


def problem(prior, idle=False):
    data = Dataset(ROWS, None, None, torch.float64)
    return Problem(lambda seed: Mean(idle), RowDensity("Mean"), prior, data, seed=0)


def test_it_is_the_exact_posterior_and_evidence_of_a_normal_mean():
    """Precision 4 + 1; evidence that of the joint normal. 4,000 draws: standard deviation within 6 %, at 5 σ."""
    posterior = Laplace(draws=4000).fit(problem(Normal(1.0)))
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
