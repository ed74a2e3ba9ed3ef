"""Closed forms of a Gaussian diffusion."""

from __future__ import annotations

import pytest
import torch

from likely.core.random import drawing, normal_like
from likely.models.generative.gaussian_steps import data_from, level_at, noise_from, posterior_step, target_of
from likely.models.generative.schedules import Cosine, Exploding, Linear

PATHS = [Cosine().path(), Linear().path(), Exploding(0.05, 8.0).path()]


@pytest.mark.parametrize("path", PATHS)
def test_the_posterior_is_that_of_the_joint_gaussian(path):
    """(xₛ, xₜ) given x₀ is Gaussian with covariance αₜₛ σₛ²: conditioning on xₜ gives mean and variance."""
    t, s = torch.tensor([0.7], dtype=torch.float64), torch.tensor([0.3], dtype=torch.float64)
    now, before = level_at(path, t, 1), level_at(path, s, 1)
    data, x = torch.tensor([1.7], dtype=torch.float64), torch.tensor([-0.4], dtype=torch.float64)
    covariance = now.alpha / before.alpha * before.sigma**2
    mean = before.alpha * data + covariance / now.sigma**2 * (x - now.alpha * data)
    variance = before.sigma**2 - covariance**2 / now.sigma**2
    got, deviation = posterior_step(x, data, now, before)
    torch.testing.assert_close(got, mean)
    torch.testing.assert_close(deviation**2, variance)


@pytest.mark.parametrize("path", PATHS)
def test_two_steps_forward_are_one(path, seed):
    """q(xₜ | x₀) has mean αₜ x₀ and variance σₜ², whether reached at once or over s."""
    times = torch.tensor([0.3, 0.8], dtype=torch.float64)
    alpha, sigma = path.alpha(times), path.sigma(times)
    ratio = alpha[1] / alpha[0]
    with drawing(seed):
        noise = normal_like(torch.zeros(2, 200_000, dtype=torch.float64))
    middle = alpha[0] * 2.0 + sigma[0] * noise[0]
    end = ratio * middle + (sigma[1] ** 2 - (ratio * sigma[0]) ** 2).sqrt() * noise[1]
    error = float(sigma[1]) / 200_000**0.5
    assert abs(float(end.mean() - alpha[1] * 2.0)) < 6 * error  # six standard errors
    assert abs(float(end.std() / sigma[1]) - 1) < 6 / (2 * 200_000) ** 0.5


@pytest.mark.parametrize("how", ["noise", "data", "velocity"])
@pytest.mark.parametrize("path", PATHS)
def test_the_three_questions_have_one_answer(how, path):
    data, noise = torch.randn(2, 5, 3, dtype=torch.float64)
    level = level_at(path, torch.rand(5, dtype=torch.float64), 2)
    x = level.alpha * data + level.sigma * noise
    answer = target_of(how, data, noise, level)
    torch.testing.assert_close(data_from(how, answer, x, level), data, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(noise_from(data, x, level), noise, rtol=1e-6, atol=1e-6)
