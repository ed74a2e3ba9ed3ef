from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import optimize, stats
from torch import distributions as td

from likely.core.errors import DataError
from likely.probability.joint import Joint
from likely.probability.quantiles import cdf, quantile

P = torch.tensor([0.0, 1e-6, 0.025, 0.3, 0.5, 0.9, 0.975, 1 - 1e-6, 1.0], dtype=torch.float64)


def d(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


A, B, N = [0.3, 1.0, 7.5], [0.4, 2.0, 30.0], [0.2, 0.5, 0.97]
CONTINUOUS = {
    "normal": (td.Normal(d(*A), d(*B)), stats.norm(A, B)),
    "laplace": (td.Laplace(d(*A), d(*B)), stats.laplace(A, B)),
    "exponential": (td.Exponential(d(*B)), stats.expon(scale=1 / np.array(B))),
    "student_t": (td.StudentT(d(*B), d(*A), d(*B)), stats.t(B, A, B)),
    "gamma": (td.Gamma(d(*A), d(*B)), stats.gamma(A, scale=1 / np.array(B))),
    "beta": (td.Beta(d(*A), d(*B)), stats.beta(A, B)),
}
DISCRETE = {
    "poisson": (td.Poisson(d(0.1, 3.0, 400.0)), stats.poisson([0.1, 3.0, 400.0])),
    "binomial": (td.Binomial(d(1, 10, 200), d(*N)), stats.binom([1, 10, 200], N)),
    "negative_binomial": (td.NegativeBinomial(d(*B), d(*N)), stats.nbinom(B, 1 - np.array(N))),
    "bernoulli": (td.Bernoulli(d(*N)), stats.bernoulli(N)),
    "categorical": (
        td.Categorical(torch.tensor([[[0.2, 0.3, 0.5]]], dtype=torch.float64)),
        stats.rv_discrete(values=([0, 1, 2], [0.2, 0.3, 0.5])),
    ),
}


def columns(frozen, name, points):
    """SciPy's answers, one row a distribution."""
    return np.stack([getattr(frozen, name)(p) for p in points.numpy()], -1).reshape(-1, len(points))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_agree_with_scipy(name):
    distribution, frozen = CONTINUOUS[name]
    np.testing.assert_allclose(quantile(distribution, P).numpy(), columns(frozen, "ppf", P), rtol=1e-8, atol=1e-12)
    values = torch.linspace(-3, 5, 30, dtype=torch.float64)
    np.testing.assert_allclose(
        cdf(distribution, values).numpy(), columns(frozen, "cdf", values), rtol=1e-10, atol=1e-14
    )


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_agree_with_scipy(name):
    distribution, frozen = DISCRETE[name]
    inside = P[1:-1]
    np.testing.assert_array_equal(quantile(distribution, inside).numpy(), columns(frozen, "ppf", inside))
    values = torch.linspace(-2, 500, 251, dtype=torch.float64)
    np.testing.assert_allclose(
        cdf(distribution, values).numpy(), columns(frozen, "cdf", values), rtol=1e-10, atol=1e-14
    )


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_ends_are_those_of_the_support(name):
    distribution, _ = DISCRETE[name]
    assert bool((quantile(distribution, 0.0) == 0).all())
    top = quantile(distribution, 1.0).flatten()
    expected = {"binomial": [1.0, 10.0, 200.0], "bernoulli": [1.0] * 3, "categorical": [2.0]}
    assert top.tolist() == expected.get(name, [np.inf] * 3)


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_quantile_undoes_the_cdf_of_counts(name, dtype):
    counts = torch.arange(1 if name == "bernoulli" else 2, dtype=torch.float64)
    distribution, _ = DISCRETE[name]
    probability = cdf(distribution, counts).to(dtype)
    below = (probability > 1e-30) & (probability < 1)  # float32 knows no smaller ones
    restored = quantile(distribution, probability)
    torch.testing.assert_close(restored[below], counts.expand_as(restored)[below])


def test_float32_in_float32_out():
    answer = quantile(td.Gamma(torch.tensor([2.0]), torch.tensor([1.0])), 0.5)
    assert answer.dtype == cdf(td.Gamma(torch.tensor([2.0]), torch.tensor([1.0])), answer).dtype == torch.float32


def test_nearly_poisson_negative_binomial():
    total = torch.tensor(1e17, dtype=torch.float64)
    near = td.NegativeBinomial(total, logits=(torch.tensor(4.0, dtype=torch.float64) / total).log())
    counts = torch.arange(12, dtype=torch.float64)
    np.testing.assert_allclose(cdf(near, counts).numpy(), stats.poisson(4.0).cdf(counts.numpy()), rtol=1e-6)


def test_mixture_of_normals_solves_its_equation():
    weights, means, scales = np.array([0.2, 0.5, 0.3]), np.array([-3.0, 0.0, 10.0]), np.array([1.0, 0.1, 2.0])
    mixture = td.MixtureSameFamily(
        td.Categorical(torch.tensor(weights)), td.Normal(torch.tensor(means), torch.tensor(scales))
    )
    for p in (0.01, 0.2, 0.5, 0.69, 0.99):
        root = optimize.brentq(lambda y, p=p: weights @ stats.norm(means, scales).cdf(y) - p, -50, 50, xtol=1e-13)
        assert quantile(mixture, p).item() == pytest.approx(root, abs=1e-9)
        assert cdf(mixture, root).item() == pytest.approx(p, abs=1e-12)
    assert quantile(mixture, 0.0).item() == -np.inf
    assert quantile(mixture, 1.0).item() == np.inf


def test_mixture_of_counts_is_the_smallest_that_reaches(generator):
    rates = torch.tensor([[0.5, 20.0], [3.0, 4.0]], dtype=torch.float64)
    mixture = td.MixtureSameFamily(td.Categorical(torch.tensor([[0.4, 0.6], [0.5, 0.5]])), td.Poisson(rates))
    probabilities = torch.rand(50, 1, dtype=torch.float64)
    quantiles = quantile(mixture, probabilities)
    assert quantiles.shape == (50, 2)
    assert bool((cdf(mixture, quantiles) >= probabilities).all())
    assert bool((cdf(mixture, quantiles - 1) < probabilities).all())


def test_one_component_is_that_component():
    gamma = td.Gamma(torch.tensor([2.0], dtype=torch.float64), torch.tensor([3.0], dtype=torch.float64))
    mixture = td.MixtureSameFamily(td.Categorical(torch.ones(1)), gamma)
    torch.testing.assert_close(quantile(mixture, P), quantile(gamma, P))


def test_vectors_answer_by_coordinate(generator):
    factor = torch.randn(4, 3, 3, dtype=torch.float64).tril()
    normal = td.MultivariateNormal(torch.randn(4, 3, dtype=torch.float64), factor @ factor.mT + torch.eye(3))
    expected = stats.norm(normal.mean.numpy(), normal.stddev.numpy()).ppf(0.9)
    np.testing.assert_allclose(quantile(normal, 0.9).numpy(), expected, rtol=1e-9)
    independent = td.Independent(td.Normal(normal.mean, normal.stddev), 1)
    torch.testing.assert_close(quantile(independent, 0.9), quantile(normal, 0.9))
    torch.testing.assert_close(cdf(independent, normal.mean), torch.full((4, 3), 0.5, dtype=torch.float64))


def test_joint_and_mixtures_of_joints():
    normal = td.Normal(torch.tensor([0.0, 5.0]), torch.tensor([1.0, 2.0]))
    poisson = td.Poisson(torch.tensor([1.0, 9.0]))
    joint = Joint({"a": normal, "b": poisson})
    for p in (0.1, 0.5, 0.8):
        both = torch.stack([quantile(normal, p), quantile(poisson, p)], -1)
        torch.testing.assert_close(quantile(joint, p), both)
        torch.testing.assert_close(
            cdf(joint, both), torch.stack([cdf(normal, both[:, 0]), cdf(poisson, both[:, 1])], -1)
        )
        weights = td.Categorical(torch.tensor([0.3, 0.7]))
        mixed = quantile(td.MixtureSameFamily(weights, joint), p)
        alone = [quantile(td.MixtureSameFamily(weights, part), p) for part in (normal, poisson)]
        torch.testing.assert_close(mixed, torch.stack(alone))


def test_probabilities_beyond_one_are_refused():
    with pytest.raises(DataError, match=r"probability has the value 1.5; it must lie between 0 and 1"):
        quantile(td.Normal(0.0, 1.0), 1.5)
