"""Samplers with the exact denoiser of a Gaussian or a mixture draw from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from likely.core.errors import SpecError
from likely.core.random import drawing, normal_like
from likely.models.generative.samplers import DDIM, DDPM, Heun
from likely.models.generative.schedules import Cosine, Exploding, Linear

MEAN, VARIANCE = 0.7, 0.25
ROWS = 4000


def gaussian(x, t, level):
    """E[x₀ | xₜ] of rows that are N(MEAN, VARIANCE)."""
    gain = level.alpha * VARIANCE / (level.alpha**2 * VARIANCE + level.sigma**2)
    return MEAN + gain * (x - level.alpha * MEAN)


def draws(sampler, path, denoise, seed):
    end = torch.ones(1, dtype=torch.float64)
    spread = (path.alpha(end) ** 2 + path.sigma(end) ** 2).sqrt()
    with drawing(seed):
        start = normal_like(torch.zeros(ROWS, 1, dtype=torch.float64)) * spread
        return sampler.run(denoise, path, start, 200)[:, 0].numpy()


@pytest.mark.parametrize("sampler", [DDPM(200), DDIM(200, eta=1.0), DDIM(200), DDIM(200, eta=0.5), Heun(60)])
@pytest.mark.parametrize("path", [Cosine().path(), Linear().path(), Exploding(0.01, 20.0).path()])
def test_every_sampler_draws_from_the_gaussian(sampler, path, seed):
    rows = draws(sampler, path, gaussian, seed)
    error = math.sqrt(VARIANCE / ROWS)
    # six standard errors, and 4 % of the deviation for finite steps: false alarms below 1e-8
    assert abs(rows.mean() - MEAN) < 6 * error + 0.02
    assert abs(rows.std() / math.sqrt(VARIANCE) - 1) < 6 / math.sqrt(2 * ROWS) + 0.04


def test_two_modes_are_drawn_as_often_as_they_should(seed):
    """p = 0.3 N(−2, 0.1²) + 0.7 N(2, 0.1²): the denoiser is a mixture's posterior mean."""
    path = Cosine().path()
    means, weights, variance = torch.tensor([-2.0, 2.0]), torch.tensor([0.3, 0.7]), 0.01

    def denoise(x, t, level):
        total = level.alpha**2 * variance + level.sigma**2
        logits = weights.log() - 0.5 * (x - level.alpha * means) ** 2 / total
        posterior_means = means + level.alpha * variance / total * (x - level.alpha * means)
        return (torch.softmax(logits, -1) * posterior_means).sum(-1, keepdim=True)

    for sampler in (DDPM(200), Heun(60)):
        rows = draws(sampler, path, denoise, seed)
        assert abs((rows > 0).mean() - 0.7) < 6 * math.sqrt(0.21 / ROWS) + 0.02
        upper = np.sort(rows[rows > 0])
        assert kstest((upper - 2.0) / 0.1, "norm").statistic < 0.08


@pytest.mark.parametrize("sampler", [DDPM(), DDIM(eta=0.0), DDIM(eta=0.4), DDIM(eta=1.0), Heun()])
@pytest.mark.parametrize("path", [Cosine().path(), Linear().path(), Exploding(0.01, 20.0).path()])
def test_a_step_that_knows_the_row_keeps_the_marginals(sampler, path):
    """If x̂₀ = x₀, then xₛ ~ N(αₛ x₀, σₛ²): a αₜ + b = αₛ and a² σₜ² + c² = σₛ², at every step."""
    like = torch.zeros(1, 1, dtype=torch.float64)
    for step in sampler.planned(path, sampler.times(40)[:-1], like):
        (now, next_), (a, b, c) = (step.now.level, step.next_.level), step[2:]
        torch.testing.assert_close(a * now.alpha + b, next_.alpha)
        torch.testing.assert_close(a**2 * now.sigma**2 + c**2, next_.sigma**2)


def test_ddim_with_all_of_the_noise_is_ddpm():
    path, like = Cosine().path(), torch.zeros(1, 1, dtype=torch.float64)
    times = DDPM(30).times(30)[:-1]
    ours, theirs = (
        torch.tensor([step[2:] for step in own.planned(path, times, like)]) for own in (DDIM(eta=1.0), DDPM())
    )
    torch.testing.assert_close(ours, theirs)


def test_a_deterministic_sampler_gives_one_row_for_one_noise():
    path = Cosine().path()
    start = torch.randn(5, 1, dtype=torch.float64)
    for sampler in (DDIM(20), Heun(20)):
        first, second = (sampler.run(gaussian, path, start, 100) for _ in range(2))
        torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_the_walk_begins_with_noise_and_ends_with_rows():
    path = Cosine().path()
    start = torch.zeros(3, 1, dtype=torch.float64)
    states = list(DDIM(7).walk(gaussian, path, start, 100))
    assert len(states) == 8
    assert states[0] is start
    torch.testing.assert_close(states[-1], DDIM(7).run(gaussian, path, start, 100))


@pytest.mark.parametrize("make", [lambda: DDIM(0), lambda: DDIM(5, eta=2.0), lambda: Heun(1.5)])
def test_bad_arguments_are_named(make):
    with pytest.raises(SpecError, match=r"must be"):
        make()
