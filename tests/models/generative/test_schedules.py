"""Noise schedules."""

from __future__ import annotations

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
