"""Estimates of the log-posterior and its gradient from mini-batches."""

from __future__ import annotations

import pytest
import torch

from likely import Regressor
from likely.inference.log_posterior import LogPosterior
from likely.inference.training.mini_batches import MANY, MiniBatches
from likely.likelihoods import Poisson
from likely.networks import MLP
from likely.priors import Normal


@pytest.fixture
def density(rng, problem_of):
    X = rng.normal(size=(60, 2))
    model = Regressor(Poisson(), MLP((3,)), Normal(2.0), random_state=0)
    return LogPosterior(problem_of(model, X, rng.poisson(2.0, size=60), sample_weight=rng.uniform(0, 2, size=60)))


@pytest.fixture
def theta(density, rng):
    return torch.from_numpy(rng.normal(size=(4, density.size)))


def test_the_mean_over_an_epoch_of_equal_batches_is_the_whole(density, theta):
    """Each row comes once, so that nothing is left to chance."""
    gradient = MiniBatches(density, 15, 0)
    value, slope = (torch.stack(batches).mean(0) for batches in zip(*(gradient(theta) for _ in range(4)), strict=True))
    torch.testing.assert_close(value, density(theta))
    torch.testing.assert_close(slope, density.value_and_grad(theta)[1])


@pytest.mark.parametrize("size", [15, 1])
def test_independent_batches_are_unbiased(density, theta, size, seed):
    """Within 5 standard errors of 2,000 batches, for each of 13 gradients: a false alarm in 1 of 10⁵ seeds."""
    gradient = MiniBatches(density, size, seed, independent=True)
    assert (gradient.count > MANY) == (size == 1)
    slopes = torch.stack([gradient(theta[:1])[1][0] for _ in range(2000)])
    error = slopes.std(0) / 2000**0.5
    assert ((slopes.mean(0) - density.value_and_grad(theta[:1])[1][0]).abs() <= 5 * error + 1e-9).all()


def test_no_size_means_all_rows(density, theta):
    gradient = MiniBatches(density, None, 0)
    assert gradient.full
    for mine, whole in zip(gradient(theta), density.value_and_grad(theta), strict=True):
        assert torch.equal(mine, whole)


def test_the_same_seed_takes_the_same_rows(density, theta):
    first, again, other = (MiniBatches(density, 7, seed) for seed in (1, 1, 2))
    for _ in range(12):
        value = first(theta)[0]
        assert torch.equal(value, again(theta)[0])
        assert not torch.equal(value, other(theta)[0])
