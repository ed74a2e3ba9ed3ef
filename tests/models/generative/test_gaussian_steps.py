"""Closed forms of a Gaussian diffusion."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from likely.core.random import drawing
from likely.models.generative.gaussian_steps import (
    Level,
    data_from,
    forward_draw,
    level_at,
    noise_from,
    posterior_step,
    target_of,
)
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
    first, second = (level_at(path, torch.tensor([t], dtype=torch.float64), 1) for t in (0.3, 0.8))
    clean = Level(torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    rows = torch.full((200_000,), 2.0, dtype=torch.float64)
    with drawing(seed):
        end = forward_draw(forward_draw(rows, clean, first), first, second)
    error = float(second.sigma) / 200_000**0.5
    assert abs(float(end.mean() - second.alpha * 2.0)) < 6 * error  # six standard errors: false alarms below 1e-8
    assert abs(float(end.std() / second.sigma) - 1) < 6 / (2 * 200_000) ** 0.5


@pytest.mark.parametrize("path", PATHS)
def test_a_term_of_the_bound_is_a_divergence_of_two_posteriors(path):
    """KL( q(xₛ|xₜ, x₀) ‖ q(xₛ|xₜ, x̂₀) ) = ½ (SNR(s) − SNR(t)) (x₀ − x̂₀)²."""
    times = torch.tensor([0.35, 0.6], dtype=torch.float64)
    before, now = (level_at(path, t, 1) for t in times.split(1))
    x, data, guess = torch.tensor([[-0.4], [1.7], [0.2]], dtype=torch.float64)
    posteriors = [Normal(*posterior_step(x, own, now, before)) for own in (data, guess)]
    fall = path.log_snr(times[:1]).exp() - path.log_snr(times[1:]).exp()
    torch.testing.assert_close(kl_divergence(*posteriors), 0.5 * fall * (data - guess) ** 2)


@pytest.mark.parametrize("how", ["noise", "data", "velocity"])
@pytest.mark.parametrize("path", PATHS)
def test_the_three_questions_have_one_answer(how, path):
    data, noise = torch.randn(2, 5, 3, dtype=torch.float64)
    level = level_at(path, torch.rand(5, dtype=torch.float64), 2)
    x = level.alpha * data + level.sigma * noise
    answer = target_of(how, data, noise, level)
    torch.testing.assert_close(data_from(how, answer, x, level), data, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(noise_from(data, x, level), noise, rtol=1e-6, atol=1e-6)
