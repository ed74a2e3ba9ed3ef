"""Averages over normal latent numbers, against integrals; and stages of the evidence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm, poisson

from likely.likelihoods import Bernoulli, Categorical, Normal, Poisson
from likely.models.kernel.gp.evidence import maximise
from likely.models.kernel.gp.predictive import points, predictive
from likely.probability.blocks import Blocks

NONE = torch.empty(0, dtype=torch.float64)


def one(mean, deviation):
    return torch.tensor([[mean]], dtype=torch.float64), torch.tensor([[[deviation**2]]], dtype=torch.float64)


@pytest.mark.parametrize(("mean", "deviation"), [(0.3, 0.1), (-2.0, 3.0), (4.0, 9.0)])
def test_probabilities_are_their_integral(mean, deviation):
    probability = predictive(Bernoulli(), *one(mean, deviation), NONE).probs.item()
    integral = quad(lambda z: norm.pdf(z) / (1 + np.exp(-(mean + deviation * z))), -12, 12, epsabs=1e-12, limit=500)[0]
    assert probability == pytest.approx(integral, abs=1e-6)


def test_counts_have_their_mixed_distribution():
    mixed = predictive(Poisson(), *one(0.5, 0.4), NONE)
    for count in (0, 2, 7):
        value = quad(lambda z, c=count: norm.pdf(z) * poisson.pmf(c, np.exp(0.5 + 0.4 * z)), -10, 10)[0]
        assert mixed.log_prob(torch.tensor([float(count)], dtype=torch.float64)).exp().item() == pytest.approx(
            value, abs=1e-9
        )
    assert mixed.mean.item() == pytest.approx(np.exp(0.5 + 0.08))  # of a log-normal rate


def test_two_numbers_are_integrated_together():
    """A normal mean and log scale: E y = μ, Var y = Var μ + E exp(2 log σ)."""
    mean = torch.tensor([[1.0, -0.5]], dtype=torch.float64)
    covariance = torch.tensor([[[0.3, 0.1], [0.1, 0.2]]], dtype=torch.float64)
    mixed = predictive(Normal(scale="input"), mean, covariance, NONE)
    assert mixed.mean.item() == pytest.approx(1.0)
    assert mixed.variance.item() == pytest.approx(0.3 + np.exp(-1.0 + 2 * 0.2), rel=1e-8)


def test_many_numbers_have_the_symmetry_of_their_distribution():
    """Equal means and variances leave equal probabilities; a far greater logit leaves one of nearly 1."""
    covariance = torch.eye(5, dtype=torch.float64).unsqueeze(0)
    even = predictive(Categorical(5), torch.zeros(1, 5, dtype=torch.float64), covariance, NONE)
    np.testing.assert_allclose(even.probs, 0.2, atol=2e-3)
    sure = predictive(Categorical(5), torch.tensor([[20.0, 0, 0, 0, 0]], dtype=torch.float64), covariance, NONE)
    assert sure.probs[0, 0].item() > 0.999999


@pytest.mark.parametrize("numbers", [1, 2, 3, 10])
def test_points_have_the_moments_of_a_normal(numbers):
    where, weights = points(numbers)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ where, 0, atol=1e-12)
    np.testing.assert_allclose((where * weights[:, None]).T @ where, np.eye(numbers), atol=1e-9)


class Bowl:
    """n times a smooth hill with its top at 1, 2 (in the limit of many rows)."""

    def __init__(self, rows):
        self.count = rows
        self.asked = 0

    def __len__(self):
        return self.count

    def rows(self, index):
        return Bowl(len(index))

    def value_and_grad(self, theta):
        self.asked += 1
        top = torch.tensor([1.0, 2.0], dtype=torch.float64) + 3 / self.count
        gap = theta - top
        value = -self.count * (torch.cosh(gap).sum() + 0.5 * gap.prod() - 2)
        gradient = -self.count * (torch.sinh(gap) + 0.5 * gap.flip(0))
        return float(value), gradient


@pytest.mark.parametrize("rows", [100, 2000, 20_000])
def test_a_hill_is_climbed_to_its_top_with_few_questions_to_all_rows(rows):
    hill = Bowl(rows)
    optimum = maximise(hill, [torch.tensor([-2.0, 6.0], dtype=torch.float64)], [(None, None)] * 2)
    np.testing.assert_allclose(optimum.hyperparameters, [1 + 3 / rows, 2 + 3 / rows], atol=1e-3)
    assert optimum.value > -1e-3
    assert optimum.converged
    assert rows < 1500 or hill.asked <= 4


def test_bounds_hold_and_the_best_start_wins():
    start = torch.zeros(2, dtype=torch.float64)
    optimum = maximise(Bowl(2000), [start, start + 1.5], [(None, 0.5), (None, None)])
    assert optimum.hyperparameters[0] == 0.5
    assert optimum.held == (0,)  # the hill still rises there: no top was reached
    assert not optimum.converged
    assert maximise(Bowl(50), [start], [(-1.0, 0.0), (0.0, 3.0)]).hyperparameters[0] == 0.0


def test_many_rows_are_answered_in_blocks_as_all_at_once(monkeypatch):
    """Not every node of the integral of every row is held, and the answers are those of the whole mixture."""
    mean = torch.linspace(-2, 2, 9, dtype=torch.float64).unsqueeze(-1)
    covariance = torch.full((9, 1, 1), 0.5, dtype=torch.float64)
    whole = predictive(Poisson(), mean, covariance, mean[0, :0])
    monkeypatch.setattr("likely.models.kernel.gp.predictive.BLOCK", 4)
    blocks = predictive(Poisson(), mean, covariance, mean[0, :0])
    assert isinstance(blocks, Blocks)
    assert not isinstance(whole, Blocks)
    torch.testing.assert_close(blocks.mean, whole.mean)
    counts = torch.arange(9, dtype=torch.float64)
    torch.testing.assert_close(blocks.log_prob(counts), whole.log_prob(counts))
