"""Coordinates around the mode whiten a linear posterior, and chains start in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Regressor, priors
from likely.inference.coordinates import CoordinateDensity
from likely.inference.log_posterior import LogPosterior
from likely.inference.mcmc.start import coordinates_of, start_chains
from likely.likelihoods import Normal
from likely.networks import MLP

SIGMA, SCALE = 0.5, 2.0


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1.0, 100.0, 1e-3]
    return X, X @ [1.0, 0.02, 500.0] + rng.normal(size=30)


@pytest.fixture
def problem(problem_of, rows):
    model = Regressor(Normal(SIGMA), prior=priors.Normal(SCALE, biases=priors.Normal(SCALE)), random_state=0)
    return problem_of(model, *rows)


def test_the_centre_is_the_mode_and_the_factor_a_root_of_the_covariance(problem, rows):
    """Both have closed forms: Σ = (X̃ᵀX̃/σ² + I/s²)⁻¹ and θ̂ = ΣX̃ᵀy/σ²."""
    X, y = rows
    wide = np.column_stack([X, np.ones(len(X))])
    covariance = np.linalg.inv(wide.T @ wide / SIGMA**2 + np.eye(4) / SCALE**2)
    coordinates = coordinates_of(problem, LogPosterior(problem))
    np.testing.assert_allclose(coordinates.centre, covariance @ wide.T @ y / SIGMA**2, rtol=1e-6)
    product = (coordinates.factor @ coordinates.factor.T).numpy()
    deviation = np.sqrt(covariance.diagonal())
    unit = np.outer(deviation, deviation)
    np.testing.assert_allclose(product / unit, covariance / unit, atol=1e-8)


def test_in_these_coordinates_the_posterior_is_standard_normal(problem):
    target = LogPosterior(problem)
    density = CoordinateDensity(target, coordinates_of(problem, target))
    phi = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    fall = density(torch.zeros(1, 4, dtype=torch.float64)) - density(phi)
    torch.testing.assert_close(fall, 0.5 * phi.square().sum(1), rtol=1e-6, atol=1e-6)


def test_chains_start_where_the_posterior_has_mass(problem):
    target = LogPosterior(problem)
    coordinates = coordinates_of(problem, target)
    first, second = (start_chains(target, coordinates, 8, 0, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (8, 4)
    density = CoordinateDensity(target, coordinates)
    assert bool((density(first) > density(torch.zeros_like(first[:1])) - 5 * 4 - 50).all())


def test_chains_of_a_network_start_apart_and_climb(problem_of, rows):
    X, y = rows
    problem = problem_of(
        Regressor(Normal(SIGMA), network=MLP((4,), "tanh"), prior=priors.Normal(1.0), random_state=0), X, y
    )
    target = LogPosterior(problem)
    coordinates = coordinates_of(problem, target)
    assert not coordinates.dense
    begin = start_chains(target, coordinates, 3, 0, torch.Generator())
    end = start_chains(target, coordinates, 3, 30, torch.Generator())
    assert bool((target(end) > target(begin)).all())
    assert float((begin[0] - begin[1]).abs().max()) > 0
