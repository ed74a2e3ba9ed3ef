"""Blocks of rows answer as the distribution of all rows does."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily, Normal

from likely.probability.blocks import Blocks
from likely.probability.quantiles import cdf, quantile

ROWS = 11


@pytest.fixture
def pair():
    """A mixture of each row, and the same made four rows at a time."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(ROWS, 5, generator=generator, dtype=torch.float64)
    weights = torch.rand(ROWS, 5, generator=generator, dtype=torch.float64)

    def mixture(rows):
        components = Normal(means[rows], torch.ones((), dtype=torch.float64), validate_args=False)
        return MixtureSameFamily(Categorical(weights[rows]), components, validate_args=False)

    return mixture(slice(None)), Blocks(mixture, ROWS, 4)


def test_blocks_hold_no_more_rows_than_they_may(pair):
    lengths = [part.batch_shape[0] for _, part in pair[1].parts()]
    assert lengths == [4, 4, 3]


def test_moments_and_densities_are_those_of_all_rows(pair):
    whole, blocks = pair
    assert blocks.batch_shape == whole.batch_shape
    torch.testing.assert_close(blocks.mean, whole.mean)
    torch.testing.assert_close(blocks.variance, whole.variance)
    for value in (torch.tensor(0.3), torch.randn(ROWS), torch.randn(3, ROWS), torch.randn(3, 1)):
        torch.testing.assert_close(blocks.log_prob(value.double()), whole.log_prob(value.double()))
        torch.testing.assert_close(blocks.cdf(value.double()), whole.cdf(value.double()))
        torch.testing.assert_close(cdf(blocks, value), cdf(whole, value))


def test_quantiles_are_those_of_all_rows(pair):
    whole, blocks = pair
    for p in (0.1, torch.tensor([[0.2], [0.9]], dtype=torch.float64)):
        torch.testing.assert_close(quantile(blocks, p), quantile(whole, p))


def test_draws_have_the_distribution_of_their_rows(pair, seed):
    """The mean of 2,000 draws of 11 rows is within 5 standard errors: a false alarm in 1 of 10⁵ seeds."""
    whole, blocks = pair
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        draws = blocks.sample((2000,))
    assert draws.shape == (2000, ROWS)
    assert bool(((draws.mean(0) - whole.mean).abs() <= 5 * (whole.variance / 2000).sqrt()).all())
    assert blocks.support.check(draws).all()
