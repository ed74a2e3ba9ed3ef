import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, wasserstein_distance, wasserstein_distance_nd
from torch.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Cauchy,
    Exponential,
    Gamma,
    Laplace,
    LogNormal,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    Poisson,
    StudentT,
    Uniform,
    VonMises,
)

from likely.core.errors import DataError
from likely.probability import js, kl, wasserstein


@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 12))
@settings(max_examples=60)
def test_on_the_line_it_is_scipys(seed, n, m):
    rng = np.random.default_rng(seed)
    x, y, v, w = rng.normal(size=n), rng.integers(-3, 3, size=m), rng.random(n), rng.integers(0, 3, size=m)
    w[0] = 1
    assert wasserstein(x, y) == pytest.approx(wasserstein_distance(x, y), abs=1e-12)
    weighted = wasserstein(x, y, p_weights=v, q_weights=w)
    assert weighted == pytest.approx(wasserstein_distance(x, y, v, w), abs=1e-12)


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 7), st.integers(2, 4))
@settings(max_examples=25)
def test_in_space_it_is_scipys(seed, n, m, d):
    rng = np.random.default_rng(seed)
    x, y, v, w = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.random(n), rng.random(m)
    assert wasserstein(x, y) == pytest.approx(wasserstein_distance_nd(x, y), abs=1e-8)
    weighted = wasserstein(x, y, p_weights=v, q_weights=w)
    assert weighted == pytest.approx(wasserstein_distance_nd(x, y, v, w), abs=1e-8)


@given(st.integers(0, 2**31), st.integers(1, 3))
@settings(max_examples=40)
def test_it_is_a_distance(seed, d):
    """W(p, p) = 0, W(p, q) = W(q, p) ≥ the distance of the means, W(p, r) ≤ W(p, q) + W(q, r)."""
    rng = np.random.default_rng(seed)
    points = [rng.normal(size=(int(rng.integers(1, 6)), d)) for _ in range(3)]
    weights = [rng.random(len(x)) for x in points]

    def between(i, j):
        return wasserstein(points[i], points[j], p_weights=weights[i], q_weights=weights[j])

    assert between(0, 0) == pytest.approx(0, abs=1e-12)
    assert between(0, 1) == pytest.approx(between(1, 0), abs=1e-10)
    assert between(0, 2) <= between(0, 1) + between(1, 2) + 1e-10
    means = [np.average(x, axis=0, weights=w) for x, w in zip(points, weights, strict=True)]
    assert between(0, 1) >= np.linalg.norm(means[0] - means[1]) - 1e-10


@pytest.mark.parametrize("theta", [-2.0, 0.001, 1.0, 1000.0])
def test_two_points_are_as_far_apart_as_they_are(theta):
    assert wasserstein([0.0], [theta]) == pytest.approx(abs(theta), rel=1e-15)
    at_zero, at_theta = [1.0, 0.0], [0.0, 1.0]  # on the outcomes {0, θ}
    assert kl(at_zero, at_theta) == math.inf
    assert js(at_zero, at_theta) == pytest.approx(math.log(2))


MIXTURE = MixtureSameFamily(Categorical(torch.ones(2)), Normal(torch.tensor([-3.0, 1.0]), torch.tensor([0.5, 2.0])))


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        (Normal(0.0, 1.0), Normal(0.0, 1.0), 0.0),
        (Normal(-1.0, 2.0), Normal(2.0, 2.0), 3.0),
        (Normal(0.0, 1.0), Normal(0.0, 3.0), 2 * math.sqrt(2 / math.pi)),
        (Normal(0.0, 2.0**-10), Normal(0.0, 1.0), (1 - 2.0**-10) * math.sqrt(2 / math.pi)),
        (Laplace(0.0, 1.0), Laplace(0.0, 2.0), 1.0),
        (Exponential(1.0), Exponential(0.5), 1.0),
        (Uniform(0.0, 1.0), Uniform(0.0, 2.0), 0.5),
        (Uniform(0.0, 1.0), Uniform(5.0, 6.0), 5.0),
        (Gamma(2.0, 1.0), Gamma(4.0, 1.0), 2.0),
        (Beta(1.0, 2.0), Beta(2.0, 1.0), 1 / 3),
        (LogNormal(0.0, 1.0), LogNormal(1.0, 1.0), math.exp(1.5) - math.exp(0.5)),
        (StudentT(2.0), StudentT(2.0, loc=1.0), 1.0),
        (MIXTURE, Normal(30.0, 0.125), 31.0),
        (Poisson(3.0), Poisson(5.0), 2.0),
        (Poisson(1000.0), Poisson(1001.0), 1.0),
        (Bernoulli(0.25), Bernoulli(0.75), 0.5),
        (Categorical(torch.tensor([0.5, 0.0, 0.5])), Categorical(torch.tensor([0.0, 1.0, 0.0])), 1.0),
        (Binomial(10, torch.tensor(0.25)), Binomial(10, torch.tensor(0.5)), 2.5),
        (Uniform(0.0, 1.0), [0.5], 0.25),
        (Bernoulli(0.5), Uniform(0.0, 1.0), 0.25),
        (OneHotCategorical(torch.tensor([0.5, 0.5])), OneHotCategorical(torch.tensor([1.0, 0.0])), math.sqrt(2) / 2),
    ],
)
def test_closed_forms(p, q, expected):
    """A shift costs its length; if one quantile function is above the other everywhere, the distance of the means."""
    assert wasserstein(p, q) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert wasserstein(q, p) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_shift_costs_its_length_even_without_a_mean():
    assert wasserstein(Cauchy(0.0, 1.0), Cauchy(1.5, 1.0)) == pytest.approx(1.5, rel=1e-7)
    assert wasserstein(Cauchy(0.0, 1.0), Normal(0.0, 1.0)) == math.inf


@pytest.mark.parametrize("points", [np.random.default_rng(0).normal(size=500), [norm.ppf(1 / 3) - 1e-4, 0.5, 2.0]])
def test_points_and_a_density_are_the_sum_of_the_areas_between_the_steps(points):
    """∫Φ = xΦ(x) + φ(x), so each area between a step and the curve has a closed form, also where they cross nearby."""
    points = np.sort(points)

    def below(x):
        return x * norm.cdf(x) + norm.pdf(x)

    area = below(points[0]) + below(-points[-1])
    for i, (a, b) in enumerate(itertools.pairwise(points)):
        step = (i + 1) / len(points)
        cross = np.clip(norm.ppf(step), a, b)
        area += step * (cross - a) - (below(cross) - below(a)) + (below(b) - below(cross)) - step * (b - cross)
    assert wasserstein(points, Normal(0.0, 1.0)) == pytest.approx(area, rel=1e-11)


def test_draws_come_close_as_they_grow(seed):
    """√n·W₁ has the same distribution for all large n, 1.3 on average: between 0.25 and 6 but for 1 of 10⁶ seeds."""
    rng = np.random.default_rng(seed)
    for n in (100, 1_000, 10_000):
        assert 0.25 < np.sqrt(n) * wasserstein(rng.normal(size=n), Normal(0.0, 1.0)) < 6


def test_tensors_are_points_too():
    assert wasserstein(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])) == 5.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wasserstein([], [1.0]), r"p must be a torch distribution or points .* shape \(0,\)"),
        (lambda: wasserstein([0.0], [[[1.0]]]), r"q must be a torch distribution or points .* shape \(1, 1, 1\)"),
        (lambda: wasserstein(["a"], [1.0]), "p must be a torch distribution or hold numbers; found list"),
        (lambda: wasserstein([0.0], [math.nan]), "q must hold finite numbers; found nan"),
        (lambda: wasserstein([[0.0, 1.0]], [1.0]), "p and q must lie in one space; points of p have 2 coordinates"),
        (
            lambda: wasserstein([[0.0, 1.0]], Normal(0.0, 1.0)),
            "p has points of 2 coordinates, the other is on the line",
        ),
        (lambda: wasserstein([0.0], [1.0], p_weights=[-1.0]), "p_weights must be 1 numbers of 0 or more.* with a -1"),
        (lambda: wasserstein([0.0], [1.0], q_weights=[1.0, 2.0]), r"q_weights must be 1 numbers.* shape \(2,\)"),
        (lambda: wasserstein(Normal(0.0, 1.0), [1.0], p_weights=[1.0]), "p_weights belong to points"),
        (lambda: wasserstein(MultivariateNormal(torch.zeros(2), torch.eye(2)), [1.0]), "give draws of it"),
        (lambda: wasserstein(VonMises(0.0, 1.0), [1.0]), "p has no distribution function to integrate; give draws"),
        (lambda: wasserstein(Normal(torch.zeros(3), 1.0), [1.0]), r"p is a batch of \(3,\) distributions"),
    ],
)
def test_what_has_no_answer_is_said(call, message):
    with pytest.raises(DataError, match=message):
        call()
