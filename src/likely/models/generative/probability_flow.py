"""The probability-flow ODE: the deterministic way from rows to noise, whose likelihood is a change of variables.

    dy/du = y − x̂₀(y, u),   y = x/α,  u = log σ/α
    log p(x) = log p(y₁) + ∫ tr( I − ∂x̂₀/∂y ) du

Its marginals are those of the diffusion, so with the exact x̂₀ it gives the exact log p.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .divergence import divergence, signs_like
from .gaussian_steps import level_at
from .schedules import Path

__all__ = ["flow_log_prob", "times_at"]

Denoiser = Callable[[Tensor, Tensor], Tensor]
"""x̂₀ from noisy rows and their times (n,)."""

SMALL = 32
"""Numbers in a row up to which the trace is exact; beyond, Hutchinson's estimate of it."""


@torch.no_grad()
def times_at(path: Path, log_snr: Tensor) -> Tensor:
    """t with λ(t) equal to these values, by bisection.

    >>> from likely.models.generative.schedules import Cosine
    >>> path = Cosine().path()
    >>> times_at(path, path.log_snr(torch.tensor([0.2, 0.9], dtype=torch.float64))).round(decimals=6).tolist()
    [0.2, 0.9]
    """
    low, high = torch.zeros_like(log_snr), torch.ones_like(log_snr)
    for _ in range(60):
        middle = 0.5 * (low + high)
        early = path.log_snr(middle) > log_snr
        low, high = torch.where(early, middle, low), torch.where(early, high, middle)
    return 0.5 * (low + high)


def flow_log_prob(denoise: Denoiser, path: Path, x: Tensor, variance: float, steps: int = 40) -> Tensor:
    """log p of rows in the units of the diffusion, by RK4 in u; noise at the end has this variance."""
    ends = path.log_snr(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
    grid = torch.linspace(ends[0], ends[1], 2 * steps + 1, dtype=torch.float64)
    times = times_at(path, grid).to(x)
    length = (ends[0] - ends[1]) / (2 * steps)  # of u = −λ/2
    y = x / level_at(path, times[:1], 1).alpha
    total = x.new_zeros(len(x))
    probe = None if x[0].numel() <= SMALL else signs_like(x)
    for k in range(steps):
        start, middle, end = times[2 * k], times[2 * k + 1], times[2 * k + 2]
        first, a = _slope(denoise, path, y, start, probe)
        second, b = _slope(denoise, path, y + 0.5 * length * first, middle, probe)
        third, c = _slope(denoise, path, y + 0.5 * length * second, middle, probe)
        fourth, d = _slope(denoise, path, y + length * third, end, probe)
        y = y + length / 6 * (first + 2 * second + 2 * third + fourth)
        total = total + length / 6 * (a + 2 * b + 2 * c + d)
    alpha = level_at(path, times[-1:], 1).alpha
    size = x[0].numel()
    noise = (y * alpha).flatten(1)
    log_noise = -0.5 * noise.square().sum(1) / variance - 0.5 * size * math.log(2 * math.pi * variance)
    return log_noise + size * alpha.log() - size * level_at(path, times[:1], 1).alpha.log() + total


def _slope(denoise: Denoiser, path: Path, y: Tensor, t: Tensor, probe: Tensor | None) -> tuple[Tensor, Tensor]:
    """dy/du and its divergence of each row."""
    times = t.expand(len(y))
    alpha = level_at(path, times, y.ndim).alpha
    return divergence(lambda point: point - denoise(point * alpha, times), y, probe)
