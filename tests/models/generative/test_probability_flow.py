"""The likelihood by the probability-flow ODE is exact where the denoiser is."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import MultivariateNormal

from likely.core.random import drawing
from likely.models.generative.gaussian_steps import level_at
from likely.models.generative.probability_flow import flow_log_prob, times_at
from likely.models.generative.schedules import Cosine, Exploding, Linear

PATHS = [Cosine().path(), Linear().path(), Exploding(0.005, 60.0).path()]
COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 0.8]], dtype=torch.float64)
MEAN = torch.tensor([0.3, -0.5], dtype=torch.float64)


def exact(path):
    """E[x₀ | xₜ] of rows that are N(MEAN, COVARIANCE)."""

    def denoise(x, t):
        level = level_at(path, t[:1], 2)
        total = level.alpha**2 * COVARIANCE + level.sigma**2 * torch.eye(2, dtype=torch.float64)
        gain = level.alpha * torch.linalg.solve(total, COVARIANCE).T
        return MEAN + (x - level.alpha * MEAN) @ gain.T

    return denoise


@pytest.mark.parametrize("path", PATHS)
def test_it_equals_the_density_of_a_gaussian(path):
    rows = torch.randn(20, 2, dtype=torch.float64)
    end = torch.ones(1, dtype=torch.float64)
    variance = float(path.alpha(end) ** 2 + path.sigma(end) ** 2)
    got = flow_log_prob(exact(path), path, rows, variance, steps=60)
    # the noise that is left at time 0, and what is left of the data at time 1, are all that differs
    torch.testing.assert_close(got, MultivariateNormal(MEAN, COVARIANCE).log_prob(rows), rtol=2e-2, atol=2e-2)


def test_times_invert_the_ratio_of_signal_and_noise():
    for path in PATHS:
        times = torch.linspace(0.01, 0.99, 9, dtype=torch.float64)
        torch.testing.assert_close(times_at(path, path.log_snr(times)), times, rtol=1e-9, atol=1e-9)


def test_hutchinsons_trace_has_the_mean_of_the_exact_one(seed):
    """Of many columns, independent N(0, ½): log p by random signs agrees with the closed form."""
    path = Cosine().path()

    def denoise(x, t):
        level = level_at(path, t, x.ndim)
        return level.alpha * 0.5 / (level.alpha**2 * 0.5 + level.sigma**2) * x

    rows = torch.randn(8, 40, dtype=torch.float64) * 0.5**0.5
    with drawing(seed):
        got = flow_log_prob(denoise, path, rows, 1.0, steps=40)
    expected = torch.distributions.Normal(0.0, 0.5**0.5).log_prob(rows).sum(1)
    torch.testing.assert_close(got, expected, rtol=2e-2, atol=0.2)
