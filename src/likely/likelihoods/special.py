"""Special functions that stay exact, and differentiable twice, where the textbook form overflows or cancels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["bounded_exp", "gamma_remainder", "log_one_minus_exp"]

LOG_2PI = math.log(2 * math.pi)


def bounded_exp(x: Tensor) -> Tensor:
    """exp(x), continued by its tangent where it (or its square, times a little) would leave the floating range.

    So a wild step of an optimiser meets a large finite slope that leads back, instead of an infinity.

    >>> bounded_exp(torch.tensor([0.0, 1e4])).isfinite().all().item()
    True
    """
    low = x.clamp_max(0.4 * math.log(torch.finfo(x.dtype).max))
    return low.exp() * (1 + (x - low))


def log_one_minus_exp(log_x: Tensor) -> Tensor:
    """log(1 − exp(−x)) from log x, for any x > 0 however small.

    >>> log_one_minus_exp(torch.tensor(-200.0))
    tensor(-200.)
    """
    x = bounded_exp(log_x)
    small = x < 1e-2
    series = log_x - 0.5 * x + x.square() / 24
    return torch.where(small, series, torch.log(-torch.expm1(-torch.where(small, 1.0, x))))


def gamma_remainder(log_z: Tensor) -> Tensor:
    """log Γ(z) − z log z + z from log z: what is left of log Γ once its large terms are taken out.

    Densities write their log Γ's by it, so that the large terms cancel on paper and not in floating point. Stirling's
    series holds from z = 8 on, with an error below 1e-12.

    >>> z = torch.tensor(3.0)
    >>> torch.allclose(gamma_remainder(z.log()), z.lgamma() - z * z.log() + z)
    True
    """
    switch = math.log(8.0)
    low, high = log_z.clamp_max(switch), log_z.clamp_min(switch)
    z, u = low.exp(), (-high).exp()
    v = u.square()
    series = u * (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v / 1188))))
    stirling = 0.5 * (LOG_2PI - high) + series
    return torch.where(log_z < switch, torch.lgamma(1 + z) - low - z * low + z, stirling)
