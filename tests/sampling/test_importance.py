"""Importance sampling: integrals, means and their standard errors.

5 standard errors are passed in one of 10⁶ runs; the p-value of a right sampler is below 1e-4 in one of 10⁴.
"""

import math

import pytest
import torch
from scipy.stats import kstest
from torch.distributions import Beta, MultivariateNormal, Normal, StudentT, Uniform

from likely.core.errors import ApproximationWarning, DataError
from likely.sampling import importance

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def test_the_normaliser_is_the_integral(seed):
    drawn = importance(lambda x: -0.5 * x**2 + 3.0, StudentT(4.0), 50_000, random_state=seed)
    assert drawn.log_normaliser == pytest.approx(HALF_LOG_2PI + 3, abs=5 * drawn.log_normaliser.standard_error)
    assert drawn.log_normaliser.standard_error < 0.005


def test_means_are_those_of_the_target_within_their_standard_error(seed):
    drawn = importance(Beta(3.0, 1.5), Uniform(0.0, 1.0), 50_000, random_state=seed)
    for f, expected in [(None, 2 / 3), (torch.square, 2 / 3 * 4 / 5.5), (torch.log, None)]:
        if expected is None:
            expected = float(torch.digamma(torch.tensor(3.0)) - torch.digamma(torch.tensor(4.5)))
        assert abs(float(drawn.mean(f)) - expected) < 5 * float(drawn.standard_error(f))


def test_the_standard_error_is_the_spread_of_repeated_estimates(seed):
    seeds = range(200 * seed, 200 * seed + 200)
    drawn = [importance(lambda x: -0.5 * (x - 1) ** 2, StudentT(5.0), 500, random_state=own) for own in seeds]
    spread = torch.stack([estimate.mean() for estimate in drawn]).std()
    claimed = torch.stack([estimate.standard_error() for estimate in drawn]).mean()
    assert float(claimed / spread) == pytest.approx(1.0, abs=5 / math.sqrt(2 * 200))


def test_equal_distributions_have_equal_weights_and_the_full_sample_size():
    drawn = importance(Normal(0.0, 1.0), Normal(0.0, 1.0), 1000, random_state=0)
    assert drawn.ess == pytest.approx(1000)
    torch.testing.assert_close(drawn.weights, torch.full((1000,), 1e-3, dtype=torch.float64))
    assert drawn.log_normaliser == pytest.approx(0.0, abs=1e-6)


def test_the_effective_sample_size_of_a_shifted_normal_is_its_closed_form(seed):
    """E w² = exp(μ²) for Normal(μ, 1) by Normal(0, 1), so ESS/n → exp(−μ²).

    Var w²/(E w²)² = exp(4μ²) − 1 = 6.1: of 200,000 draws its relative standard error is 0.6 %, and 3 % are allowed.
    """
    drawn = importance(Normal(0.7, 1.0), Normal(0.0, 1.0), 200_000, random_state=seed)
    assert drawn.ess / 200_000 == pytest.approx(math.exp(-0.49), rel=0.03)


def test_resampled_draws_have_the_target_distribution(seed):
    drawn = importance(lambda x: -0.5 * (x - 1) ** 2, StudentT(3.0), 200_000, random_state=seed)
    assert kstest(drawn.resample(2000, random_state=seed + 1).numpy(), "norm", (1.0, 1.0)).pvalue > 1e-4
    assert torch.equal(drawn.resample(10, random_state=seed + 1), drawn.resample(10, random_state=seed + 1))


def test_vectors_have_vector_means(seed):
    target = MultivariateNormal(torch.tensor([1.0, -1.0]), torch.eye(2))
    drawn = importance(target, MultivariateNormal(torch.zeros(2), 4 * torch.eye(2)), 100_000, random_state=seed)
    gap = (drawn.mean() - target.mean).abs()
    assert bool((gap < 5 * drawn.standard_error()).all())


def test_the_same_seed_gives_the_same_bits_and_no_global_change():
    before = torch.get_rng_state()
    first, second = (importance(Beta(2.0, 2.0), Uniform(0.0, 1.0), 50, random_state=2) for _ in range(2))
    assert torch.equal(first.weights, second.weights)
    assert torch.equal(torch.get_rng_state(), before)


def test_few_effective_draws_are_said():
    with pytest.warns(ApproximationWarning, match=r"The 1000 draws are worth 1\.\d .*heavier tails"):
        importance(Normal(8.0, 0.1), Normal(0.0, 1.0), 1000, random_state=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: importance(Uniform(5.0, 6.0), Uniform(0.0, 1.0), 10), "−inf at all 10 draws of the proposal"),
        (lambda: importance(lambda x: x * math.inf, Uniform(1.0, 2.0), 10), "log_target is inf at"),
        (lambda: importance(Normal(0.0, 1.0), 3.0, 10), "proposal must be a torch distribution"),
        (lambda: importance(Normal(0.0, 1.0), Normal(0.0, 1.0), 1), "n must be an integer of 2 or more"),
        (
            lambda: importance(Normal(0.0, 1.0), Normal(0.0, 1.0), 20, random_state=0).mean(torch.sum),
            "f must give one value",
        ),
    ],
)
def test_what_cannot_be_weighted_is_said(call, message):
    with pytest.raises(DataError, match=message):
        call()
