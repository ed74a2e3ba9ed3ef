"""Rejection sampling: what is kept, how much of it, and the bound.

Of a right sampler each p-value is below 1e-4 in one of 10⁴ runs, and 5 standard errors are passed in one of 10⁶.
"""

import math

import pytest
import torch
from scipy.stats import kstest
from torch.distributions import Beta, Categorical, Gamma, Independent, MultivariateNormal, Normal, StudentT, Uniform

from likely.core.errors import ApproximationWarning, DataError
from likely.sampling import rejection

CAUCHY = StudentT(torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize(
    ("target", "proposal", "k"),
    [
        (Beta(2.0, 2.0), Uniform(0.0, 1.0), 1.5),  # the height of the density
        (Normal(0.0, 1.0), CAUCHY, math.sqrt(2 * math.pi / math.e)),
        (Normal(0.0, 1.0), Normal(0.0, 2.0), 2.0),
        (Normal(0.0, 1.0), CAUCHY, 10.0),  # any bound will do, at its price
    ],
)
def test_of_normalised_densities_one_in_k_is_accepted(target, proposal, k, seed):
    kept = rejection(target, proposal, 20_000, log_k=math.log(k), random_state=seed)
    assert abs(kept.acceptance - 1 / k) < 5 * kept.acceptance.standard_error
    assert not kept.estimated
    assert kept.draws.shape == (20_000,)
    assert kept.log_normaliser == pytest.approx(0.0, abs=5 * kept.log_normaliser.standard_error)
    assert kstest(kept.draws[:5000].numpy(), lambda x: target_cdf(target, x)).pvalue > 1e-4


def target_cdf(target, x):
    if isinstance(target, Beta):
        return 3 * x**2 - 2 * x**3
    return target.cdf(torch.from_numpy(x)).numpy()


@pytest.mark.parametrize(
    ("target", "proposal", "k"),
    [
        (Beta(2.0, 2.0), Uniform(0.0, 1.0), 1.5),
        (Normal(0.0, 1.0), CAUCHY, math.sqrt(2 * math.pi / math.e)),
        (Gamma(2.0, 1.0), Gamma(1.0, 0.5), 4 / math.e),  # x e^{−x} / ½e^{−x/2} at x = 2
        (Categorical(torch.tensor([0.5, 0.25, 0.25])), Categorical(torch.ones(3)), 1.5),
    ],
)
def test_the_bound_is_found_if_it_is_not_given(target, proposal, k, seed):
    kept = rejection(target, proposal, 1000, random_state=seed)
    assert kept.estimated
    assert math.exp(kept.log_k) == pytest.approx(k, rel=1e-5)
    assert "estimated" in repr(kept)


def test_an_unknown_constant_is_measured(seed):
    """p ∝ exp(−x²/2) has ∫p = √2π; the share kept is ∫p / k."""
    kept = rejection(lambda x: -0.5 * x**2, CAUCHY, 20_000, random_state=seed)
    truth = 0.5 * math.log(2 * math.pi)
    assert kept.log_normaliser == pytest.approx(truth, abs=5 * kept.log_normaliser.standard_error)


def test_in_the_plane_a_truncated_normal_is_drawn(seed):
    """Inside the unit disc, a normal has radius with cdf (1 − e^{−r²/2}) / (1 − e^{−1/2})."""

    def log_target(x):
        return torch.where(x.square().sum(-1) < 1, -0.5 * x.square().sum(-1), -torch.inf)

    square = Independent(Uniform(-torch.ones(2), torch.ones(2)), 1)
    kept = rejection(log_target, square, 4000, log_k=math.log(4.0), random_state=seed)
    radius = kept.draws.norm(dim=-1).numpy()
    assert (
        kstest(radius, lambda r: -torch.expm1(torch.tensor(-(r**2) / 2)).numpy() / (1 - math.exp(-0.5))).pvalue > 1e-4
    )


def test_a_bound_that_is_broken_is_an_error_with_its_point():
    with pytest.raises(DataError, match=r"log_k=0.1 is not a bound: at 0\.[45]\d* log_target − log proposal is 0.405"):
        rejection(Beta(2.0, 2.0), Uniform(0.0, 1.0), 5000, log_k=0.1, random_state=0)


class LeftFirst(Uniform):
    """Uniform on [0, 1], but that its first draws, which are those of the search, all lie in the left half."""

    def __init__(self):
        super().__init__(0.0, 1.0)
        self.halved = False

    def sample(self, sample_shape=()):
        x = super().sample(sample_shape)
        self.halved, first = True, not self.halved
        return x / 2 if first else x


def test_a_bound_that_was_found_and_then_broken_is_raised_and_said(seed):
    """p is e² on the last quarter, 1 on the rest. A second batch of 20,000 misses that quarter never."""

    def log_target(x):
        return torch.where((x > 0.75) & (x <= 1), 2.0, 0.0)

    with pytest.warns(ApproximationWarning, match=r"log_k=0, was broken by a later proposal and raised to 2"):
        kept = rejection(log_target, LeftFirst(), 20_000, random_state=seed)
    assert kept.log_k == pytest.approx(2.0)
    assert len(kept.draws) == 20_000
    assert abs(kept.acceptance - (0.25 + 0.75 * math.exp(-2))) < 5 * kept.acceptance.standard_error


def test_the_same_seed_gives_the_same_bits_and_no_global_change():
    before = torch.get_rng_state()
    first, second = (rejection(Beta(2.0, 2.0), Uniform(0.0, 1.0), 50, random_state=2) for _ in range(2))
    assert torch.equal(first.draws, second.draws)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection(CAUCHY, Normal(0.0, 1.0), 10, random_state=0), "seems to grow without bound"),
        (lambda: rejection(Normal(0.0, 1.0), CAUCHY, 10, log_k=math.inf), "log_k must be a finite number, or None"),
        (lambda: rejection(Normal(0.0, 1.0), 3.0, 10), "proposal must be a torch distribution; found float"),
        (lambda: rejection(3.0, CAUCHY, 10), "log_target must be a function of rows"),
        (lambda: rejection(lambda x: x * math.nan, CAUCHY, 10), r"log_target is nan at .*\(row 0\)"),
        (
            lambda: rejection(lambda x: x.sum(), CAUCHY, 10),
            r"log_target must give one number for each of the 10000 rows",
        ),
        (lambda: rejection(Uniform(5.0, 6.0), Uniform(0.0, 1.0), 10), "the proposal misses the target"),
        (
            lambda: rejection(Normal(0.0, 1.0), CAUCHY, 10, log_k=20.0, max_proposals=10_000),
            "Only 0 of 10000 proposals were kept at log_k=20, and 10 are asked for",
        ),
        (
            lambda: rejection(MultivariateNormal(torch.zeros(2), torch.eye(2)), Normal(torch.zeros(2), 1.0), 10),
            r"proposal is a batch of \(2,\) distributions; .*Independent\(…, 1\)",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(call, message):
    with pytest.raises(DataError, match=message):
        call()
