"""Noise schedules."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.errors import SpecError
from likely.models.generative.schedules import Cosine, Exploding, Learned, Linear

TIMES = torch.linspace(0, 1, 101, dtype=torch.float64)


@pytest.mark.parametrize("schedule", [Cosine(), Linear(), Exploding(), Learned()])
def test_noise_grows_and_the_ends_are_data_and_noise(schedule):
    path = schedule.path().double()
    log_snr = path.log_snr(TIMES).detach()
    assert bool((log_snr.diff() < 0).all())
    assert float(log_snr[0]) > 7
    assert float(log_snr[-1]) < -5
    assert bool(log_snr.isfinite().all())


@pytest.mark.parametrize("schedule", [Cosine(), Linear(), Learned()])
def test_variance_is_preserved(schedule):
    path = schedule.path().double()
    torch.testing.assert_close(path.alpha(TIMES) ** 2 + path.sigma(TIMES) ** 2, torch.ones_like(TIMES))


def test_signal_and_noise_agree_with_their_ratio():
    for schedule in (Cosine(), Linear(), Exploding()):
        path = schedule.path()
        ratio = 2 * (path.alpha(TIMES).log() - path.sigma(TIMES).log())
        torch.testing.assert_close(ratio, path.log_snr(TIMES), rtol=1e-9, atol=1e-9)


def test_the_linear_schedule_is_the_integral_of_its_rate():
    """log ᾱ(t) = −∫β, with β from 0.1 to 20."""
    path = Linear(0.1, 20.0).path()
    integral = 0.1 * TIMES + 0.5 * 19.9 * TIMES**2
    torch.testing.assert_close(path.alpha(TIMES) ** 2, torch.exp(-integral), rtol=1e-4, atol=1e-12)


def drift_and_diffusion(path):
    """f and g² of dx = f x dt + g dW: f = d log α / dt,  g² = dσ²/dt − 2 f σ²."""
    times = TIMES[1:-1].clone().requires_grad_()
    alpha, sigma = path.level(times)
    log_alpha = alpha.log() + 0 * times  # a constant one has a derivative too
    (drift,) = torch.autograd.grad(log_alpha.sum(), times, retain_graph=True)
    (growth,) = torch.autograd.grad(sigma.square().sum(), times)
    return drift, growth - 2 * drift * sigma.square().detach()


def test_the_linear_schedule_is_the_variance_preserving_equation():
    """dx = −½β x dt + √β dW."""
    drift, diffusion = drift_and_diffusion(Linear(0.1, 20.0).path())
    rate = 0.1 + 19.9 * TIMES[1:-1]
    torch.testing.assert_close(drift, -0.5 * rate)
    torch.testing.assert_close(diffusion, rate)


def test_the_exploding_schedule_is_the_variance_exploding_equation():
    """dx = √(dσ²/dt) dW, with σ growing geometrically."""
    path = Exploding(0.01, 50.0).path()
    drift, diffusion = drift_and_diffusion(path)
    torch.testing.assert_close(drift, torch.zeros_like(drift))
    torch.testing.assert_close(diffusion, 2 * math.log(5000.0) * path.sigma(TIMES[1:-1]) ** 2)


def test_a_learned_schedule_has_gradients():
    path = Learned(4).path().double()
    path.log_snr(TIMES).sum().backward()
    assert all(bool(value.grad.isfinite().all()) for value in path.parameters())
    assert float(path.ends.grad.abs().min()) > 0


@pytest.mark.parametrize(
    "make", [lambda: Linear(0.0), lambda: Cosine(0.7), lambda: Exploding(2.0, 1.0), lambda: Learned(1)]
)
def test_bad_arguments_are_named(make):
    with pytest.raises(SpecError):
        make()
