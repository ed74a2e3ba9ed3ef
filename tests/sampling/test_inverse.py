"""Draws by quantile functions. Each p-value of a right one is below 1e-4 in one of 10⁴ runs."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from torch.distributions import Beta, Exponential, Gamma, Normal, Poisson, StudentT, VonMises

from likely.core.errors import DataError, SpecError
from likely.sampling import inverse_cdf, inverse_transform

N = 4000


@pytest.mark.parametrize(
    ("quantile", "name", "arguments"),
    [
        (lambda p: -torch.log1p(-p), "expon", ()),
        (lambda p: torch.tan(math.pi * (p - 0.5)), "cauchy", ()),
        (Normal(1.0, 2.0), "norm", (1.0, 2.0)),
        (Gamma(2.5, 2.0), "gamma", (2.5, 0, 0.5)),
        (Beta(0.5, 2.0), "beta", (0.5, 2.0)),
        (StudentT(3.0), "t", (3.0,)),
        (inverse_cdf(lambda x: x**3, 0.0, 1.0), "beta", (3.0, 1.0)),
        (inverse_cdf(lambda x: -torch.expm1(-x), 0.0, 60.0), "expon", ()),
    ],
)
def test_draws_have_the_distribution_of_the_quantile_function(quantile, name, arguments, seed):
    draws = inverse_transform(quantile, N, random_state=seed)
    assert draws.shape == (N,)
    assert draws.dtype == torch.float64
    assert kstest(draws.numpy(), name, arguments).pvalue > 1e-4


def test_counts_come_out_with_their_probabilities(seed):
    rate = 2.0
    draws = inverse_transform(Poisson(rate), 20_000, random_state=seed).long().numpy()
    seen = np.bincount(np.minimum(draws, 7), minlength=8)
    chances = Poisson(rate).log_prob(torch.arange(7.0)).exp().numpy()
    expected = 20_000 * np.append(chances, 1 - chances.sum())
    assert chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-4


def test_a_distribution_function_is_inverted_to_the_last_bit():
    p = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    quantiles = inverse_cdf(torch.special.ndtr, -10.0, 10.0)(p)
    torch.testing.assert_close(quantiles, torch.special.ndtri(p), rtol=1e-12, atol=1e-14)


def test_a_step_is_answered_by_the_smallest_place_that_reaches_it():
    quantile = inverse_cdf(lambda x: (x >= 0.3).double() * 0.5 + (x >= 0.7).double() * 0.5, 0.0, 1.0)
    places = quantile(torch.tensor([0.1, 0.5, 0.6], dtype=torch.float64))
    torch.testing.assert_close(places, torch.tensor([0.3, 0.3, 0.7], dtype=torch.float64))


def test_a_batch_of_distributions_gives_a_column_each(seed):
    draws = inverse_transform(Exponential(torch.tensor([1.0, 10.0])), N, random_state=seed)
    assert draws.shape == (N, 2)
    assert kstest(draws[:, 1].numpy(), "expon", (0, 0.1)).pvalue > 1e-4


def test_the_same_seed_gives_the_same_bits_and_no_global_change():
    before = torch.get_rng_state()
    first, second = (inverse_transform(Normal(0.0, 1.0), 10, random_state=5) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    by_generator = inverse_transform(Normal(0.0, 1.0), 10, random_state=torch.Generator().manual_seed(5))
    assert by_generator.shape == (10,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: inverse_transform(torch.log, 0), DataError, "n must be an integer of 1 or more; found 0"),
        (
            lambda: inverse_transform(3.0, 5),
            DataError,
            "quantile must be a function or a torch distribution; found float",
        ),
        (lambda: inverse_transform(lambda p: p[:2], 5), DataError, r"one number for each probability, shape \(5,\)"),
        (lambda: inverse_transform(lambda p: p * math.nan, 5), DataError, "quantile is NaN at the probability 0"),
        (lambda: inverse_transform(VonMises(0.0, 1.0), 5), DataError, "VonMises has no quantile function"),
        (lambda: inverse_transform(torch.log, 5, random_state="a"), SpecError, "'a' is not a seed"),
        (
            lambda: inverse_cdf(torch.special.ndtr, -1.0, 1.0),
            DataError,
            "cdf is 0.158655 at low=-1 and 0.841345 at high=1",
        ),
        (lambda: inverse_cdf(torch.special.ndtr, 1.0, -1.0), DataError, "low and high must be finite with low < high"),
    ],
)
def test_what_cannot_be_inverted_is_said(call, error, message):
    with pytest.raises(error, match=message):
        call()
