"""Simulation-based calibration: if θ ~ prior and y ~ p(y | θ), the rank of θ among posterior draws is uniform.

All posteriors are chains of one run, each with data of its own. A right sampler fails a test with
probability 1e-4.
"""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch.distributions import Beta, Normal

from likely.core.errors import ConvergenceWarning
from likely.sampling import Gibbs, MetropolisHastings, sample

POSTERIORS, DRAWS = 800, 19


def ranks(log_prob, initial, method, truth, seed):
    """How many of 19 thinned draws lie below the θ that made the data: 0 … 19, uniform."""
    thin = 25 if isinstance(method, MetropolisHastings) else 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # each chain has its own target
        chains = sample(log_prob, initial, method, draws=DRAWS * thin, warmup=10 * thin, random_state=seed)
    thinned = chains.draws[:, ::thin].reshape(POSTERIORS, DRAWS, -1)
    return (thinned < truth.reshape(POSTERIORS, 1, -1)).sum(1).numpy()


def uniform(rank):
    return chisquare(np.bincount(rank, minlength=DRAWS + 1)).pvalue


@pytest.fixture
def generator(seed):
    return torch.Generator().manual_seed(seed)


def normal_normal(generator):
    """θ ~ Normal(1, 2), five y ~ Normal(θ, 1)."""
    theta = 1 + 2 * torch.randn(POSTERIORS, generator=generator, dtype=torch.float64)
    y = theta[:, None] + torch.randn(POSTERIORS, 5, generator=generator, dtype=torch.float64)

    def log_prob(x):
        return Normal(1.0, 2.0).log_prob(x[:, 0]) + Normal(x, 1.0).log_prob(y).sum(-1)

    def conditional(x):
        precision = 1 / 4 + 5
        return Normal((1 / 4 + y.sum(-1)) / precision, torch.full_like(theta, precision**-0.5))

    return theta, torch.ones(POSTERIORS, 1), log_prob, conditional


def beta_binomial(generator):
    """θ ~ Beta(2, 3), y ~ Binomial(10, θ)."""
    with torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())
        theta = Beta(torch.tensor(2.0, dtype=torch.float64), 3.0).sample((POSTERIORS,))
        y = torch.distributions.Binomial(10, theta).sample()

    def log_prob(x):
        inside = (x[:, 0] > 0) & (x[:, 0] < 1)
        safe = torch.where(inside, x[:, 0], 0.5)
        logs = (1 + y) * safe.log() + (2 + 10 - y) * torch.log1p(-safe)
        return torch.where(inside, logs, -torch.inf)

    return theta, torch.full((POSTERIORS, 1), 0.5), log_prob, lambda x: Beta(2 + y, 13 - y)


@pytest.mark.parametrize("model", [normal_normal, beta_binomial])
@pytest.mark.parametrize("kind", ["walk", "slice", "conditional"])
def test_ranks_are_uniform(model, kind, generator, seed):
    theta, initial, log_prob, conditional = model(generator)
    method = {"walk": MetropolisHastings(), "slice": Gibbs(), "conditional": Gibbs(conditionals=[conditional])}[kind]
    assert uniform(ranks(log_prob, initial, method, theta, seed)[:, 0]) > 1e-4


def test_ranks_are_uniform_with_two_unknowns(generator, seed):
    """μ ~ Normal(0, 3), log σ ~ Normal(0, ½), eight y ~ Normal(μ, σ)."""
    mu = 3 * torch.randn(POSTERIORS, generator=generator, dtype=torch.float64)
    log_sigma = 0.5 * torch.randn(POSTERIORS, generator=generator, dtype=torch.float64)
    noise = torch.randn(POSTERIORS, 8, generator=generator, dtype=torch.float64)
    y = mu[:, None] + log_sigma.exp()[:, None] * noise

    def log_prob(x):
        prior = Normal(0.0, 3.0).log_prob(x[:, 0]) + Normal(0.0, 0.5).log_prob(x[:, 1])
        return prior + Normal(x[:, :1], x[:, 1:].exp()).log_prob(y).sum(-1)

    rank = ranks(log_prob, torch.zeros(POSTERIORS, 2), Gibbs(), torch.stack([mu, log_sigma], 1), seed)
    assert uniform(rank[:, 0]) > 1e-4
    assert uniform(rank[:, 1]) > 1e-4


def test_a_wrong_sampler_is_found_out(generator, seed):
    """Posterior draws that are too narrow by a third give ranks that are far from uniform: the test can fail."""
    theta, initial, log_prob, _ = normal_normal(generator)
    assert uniform(ranks(lambda x: 2.25 * log_prob(x), initial, MetropolisHastings(), theta, seed)[:, 0]) < 1e-6
