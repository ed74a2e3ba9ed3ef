import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Exponential,
    Gamma,
    Independent,
    Laplace,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    Poisson,
    StudentT,
    Uniform,
)

from likely.core.errors import DataError
from likely.probability import cross_entropy, entropy, js, kl

LOG_2 = math.log(2)


@st.composite
def pairs(draw):
    """Two probability vectors over the same outcomes, some of them without mass."""
    size = draw(st.integers(2, 6))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    p, q = (np.array(draw(weights), dtype=float) for _ in range(2))
    return p / p.sum(), q / q.sum()


@given(pairs())
@settings(deadline=None, max_examples=150)
def test_facts_of_all_tables(pair):
    p, q = pair
    assert kl(p, q) >= 0
    assert kl(p, p) == 0
    assert 0 <= js(p, q) <= LOG_2
    assert js(p, q) == pytest.approx(js(q, p))
    assert 0 <= entropy(p) <= math.log(len(p)) + 1e-12
    assert cross_entropy(p, q) == pytest.approx(entropy(p) + kl(p, q))
    assert entropy(p) == pytest.approx(scipy.stats.entropy(p))
    assert kl(p, q) == pytest.approx(scipy.stats.entropy(p, q))


@given(
    st.tuples(st.floats(-3, 3), st.floats(0.1, 3), st.floats(-3, 3), st.floats(0.1, 3)),
)
@settings(deadline=None, max_examples=60)
def test_kl_of_normals_is_never_negative(numbers):
    mean, scale, other_mean, other_scale = numbers
    value = kl(Normal(mean, scale), Normal(other_mean, other_scale))
    closed = math.log(other_scale / scale) + (scale**2 + (mean - other_mean) ** 2) / (2 * other_scale**2) - 0.5
    assert value >= -1e-6
    assert value == pytest.approx(closed, rel=1e-4, abs=1e-5)


def test_point_masses_share_nothing():
    here, there = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    assert kl(here, there) == math.inf
    assert cross_entropy(here, there) == math.inf
    assert js(here, there) == pytest.approx(LOG_2)
    assert kl(Bernoulli(torch.tensor(0.5)), Bernoulli(torch.tensor(1.0))) == math.inf
    assert kl(Binomial(3, torch.tensor(0.5)), Binomial(3, torch.tensor(0.0))) == math.inf


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Uniform(0.0, 1.0), Uniform(2.0, 3.0)),
        (Uniform(0.0, 1.0), Independent(Uniform(torch.tensor(5.0), torch.tensor(6.0)), 0)),
        (Poisson(3.0), Normal(0.0, 1.0)),
        (Normal(0.0, 1.0), Poisson(3.0)),
        (OneHotCategorical(torch.tensor([1.0, 0.0])), OneHotCategorical(torch.tensor([0.0, 1.0]))),
    ],
)
def test_disjoint_supports(p, q):
    assert kl(p, q) == math.inf
    assert cross_entropy(p, q) == math.inf
    assert js(p, q, random_state=0) == pytest.approx(LOG_2)


def test_partial_overlap_of_uniforms_is_exact(seed):
    """Half of each lies outside the other: KL = ∞, JS = ½ log 2 because the shared half has the log-ratio 0."""
    p, q = Uniform(0.0, 2.0), Uniform(1.0, 3.0)
    assert kl(p, q) == math.inf
    estimate = js(p, q, draws=20_000, random_state=seed)
    assert abs(estimate - 0.5 * LOG_2) < 4 * estimate.standard_error  # false alarm 6e-5


CLOSED = [
    (Normal(0.5, 1.3), Normal(-0.2, 0.9)),
    (Gamma(2.0, 1.5), Gamma(3.0, 2.0)),
    (Beta(2.0, 3.0), Beta(1.5, 1.5)),
    (Exponential(1.2), Gamma(2.0, 1.0)),
    (Laplace(0.0, 1.0), Normal(0.5, 2.0)),
    (Normal(0.5, 2.0), Laplace(0.0, 1.0)),
    (Uniform(0.0, 1.0), Normal(0.0, 1.0)),
    (Independent(Normal(torch.tensor([0.0, 1.0]), 1.0), 1), Independent(Normal(torch.zeros(2), 2.0), 1)),
    (
        MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]])),
        MultivariateNormal(torch.ones(2), torch.eye(2)),
    ),
]


class Opaque(torch.distributions.Distribution):
    """A distribution without closed forms, so that draws must do."""

    def __init__(self, base):
        self.base = base
        super().__init__(base.batch_shape, base.event_shape, validate_args=False)

    @property
    def support(self):
        return self.base.support

    def sample(self, sample_shape=()):
        return self.base.sample(sample_shape)

    def log_prob(self, value):
        return self.base.log_prob(value)


@pytest.mark.parametrize(("p", "q"), CLOSED, ids=lambda d: type(d).__name__)
def test_draws_agree_with_closed_forms(p, q, seed):
    """Each of 27 comparisons raises a false alarm with probability 6e-5."""
    for question in (kl, cross_entropy):
        exact, drawn = question(p, q), question(Opaque(p), Opaque(q), draws=20_000, random_state=seed + 1)
        assert exact.standard_error == 0 < drawn.standard_error
        assert abs(exact - drawn) < 4 * drawn.standard_error
    exact, drawn = entropy(p), entropy(Opaque(p), draws=20_000, random_state=seed + 2)
    assert exact.standard_error == 0
    assert abs(exact - drawn) <= 4 * drawn.standard_error + 1e-6  # the entropy of a Uniform has no error by draws


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Poisson(3.0), Poisson(4.0)),
        (StudentT(5.0), Normal(0.0, 1.0)),
        (
            MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-2.0, 2.0]), 1.0)),
            Normal(0.0, 2.0),
        ),
    ],
    ids=["poisson", "student", "mixture"],
)
def test_identities_hold_by_draws(p, q, seed):
    """CE = H + KL within 4 combined standard errors (false alarm 6e-5 each), and JS is below its bound."""
    parts = [cross_entropy(p, q, random_state=seed), entropy(p, random_state=seed + 1), kl(p, q, random_state=seed + 2)]
    error = math.hypot(*(part.standard_error for part in parts))
    assert abs(parts[0] - parts[1] - parts[2]) < 4 * error
    divergence = js(p, q, random_state=seed + 3)
    assert 0 <= divergence <= LOG_2
    assert abs(divergence - js(q, p, random_state=seed + 4)) < 4 * math.sqrt(2) * divergence.standard_error


def test_js_of_distant_normals_reaches_its_bound():
    assert js(Normal(-50.0, 1.0), Normal(50.0, 1.0), random_state=0) == pytest.approx(LOG_2)


def test_finite_distributions_and_tables_are_one():
    p, q = torch.tensor([0.2, 0.3, 0.5]), torch.tensor([0.1, 0.6, 0.3])
    exact = kl(p, q)
    assert kl(Categorical(p), q.numpy()) == pytest.approx(exact)
    assert kl(OneHotCategorical(p), OneHotCategorical(q)) == pytest.approx(exact)
    assert kl(p.reshape(1, 3), q.reshape(1, 3)) == pytest.approx(exact)
    chance = torch.tensor(0.3)
    assert kl(Bernoulli(chance), Binomial(1, torch.tensor(0.6))) == pytest.approx(kl([0.7, 0.3], [0.4, 0.6]), rel=1e-6)


def test_a_finite_sum_against_an_infinite_support_is_exact():
    binomial, poisson = Binomial(4, torch.tensor(0.5)), Poisson(2.0)
    k = np.arange(5)
    exact = scipy.stats.entropy(scipy.stats.binom.pmf(k, 4, 0.5))
    log_q = scipy.stats.poisson.logpmf(k, 2.0)
    cross = -(scipy.stats.binom.pmf(k, 4, 0.5) * log_q).sum()
    assert entropy(binomial) == pytest.approx(exact)
    assert cross_entropy(binomial, poisson) == pytest.approx(cross, rel=1e-6)
    assert kl(binomial, poisson) == pytest.approx(cross - exact, rel=1e-6)
    assert kl(poisson, binomial) == math.inf


def test_extreme_logits_do_not_become_infinite():
    p, q = Categorical(logits=torch.tensor([0.0, -1e4])), Categorical(logits=torch.tensor([-1e4, 0.0]))
    assert kl(p, q) == pytest.approx(1e4)
    assert kl(Bernoulli(logits=torch.tensor(1e4)), Bernoulli(logits=torch.tensor(-1e4))) == pytest.approx(1e4)
    assert kl([0.5, 0.5], [1.0 - 1e-300, 1e-300]) == pytest.approx(0.5 * (300 * math.log(10)) - LOG_2)


def test_the_same_seed_gives_the_same_answer_and_global_state_stays():
    mixture = MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-2.0, 2.0]), 1.0))
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    assert entropy(mixture, random_state=7) == entropy(mixture, random_state=7)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kl([0.5, 0.6], [0.5, 0.5]), "p sums to 1.1; probabilities sum to 1"),
        (lambda: kl([0.5, 0.5], [-0.5, 1.5]), "q must hold probabilities, which are 0 or more; found -0.5"),
        (lambda: kl([0.5, 0.5], [0.2, 0.3, 0.5]), r"tables of one shape; found \(2,\) and \(3,\)"),
        (lambda: entropy("abc"), "p must be a torch distribution or a vector or table"),
        (lambda: entropy(Normal(torch.zeros(3), 1.0)), r"p is a batch of \(3,\) distributions.*Independent\(p, 1\)"),
        (
            lambda: kl(Normal(0.0, 1.0), MultivariateNormal(torch.zeros(2), torch.eye(2))),
            r"of p has shape \(\), of q \(2,\)",
        ),
        (lambda: entropy(Poisson(2.0), draws=1), "draws must be an integer of 2 or more; found 1"),
    ],
)
def test_errors_say_what_would_do(call, message):
    with pytest.raises(DataError, match=message):
        call()
