"""Steps between two noise levels of a Gaussian diffusion, in closed form.

    q(xₜ | x₀) = N(αₜ x₀, σₜ²)
    q(xₛ | xₜ, x₀) = N( (αₜₛ σₛ² xₜ + αₛ σ²ₜₛ x₀) / σₜ²,  σ²ₜₛ σₛ² / σₜ² ),   s < t
    αₜₛ = αₜ/αₛ,   σ²ₜₛ = σₜ² − αₜₛ² σₛ²

One network answers three questions that are each other's linear functions: the noise ε, the data x₀, the velocity
v = αₜ ε − σₜ x₀.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ...core.random import normal_like
from .schedules import Path

__all__ = [
    "Level",
    "Predicts",
    "data_from",
    "forward_draw",
    "level_at",
    "noise_from",
    "posterior_step",
    "posterior_weights",
    "target_of",
]

Predicts = Literal["noise", "data", "velocity"]


class Level(NamedTuple):
    """αₜ and σₜ of each row, shaped so that they multiply rows."""

    alpha: Tensor
    sigma: Tensor


def level_at(path: Path, t: Tensor, ndim: int) -> Level:
    """The level of times (n,) for rows with so many axes, the first included."""
    wide = (-1, *(1,) * (ndim - 1))
    alpha, sigma = path.level(t)
    return Level(alpha.view(wide), sigma.view(wide))


def forward_draw(x: Tensor, now: Level, later: Level) -> Tensor:
    """A draw of q(xₜ | xₛ) = N(αₜₛ xₛ, σ²ₜₛ), where t is the later, noisier level."""
    ratio = later.alpha / now.alpha
    deviation = (later.sigma.square() - (ratio * now.sigma).square()).clamp_min(0).sqrt()
    return ratio * x + deviation * normal_like(x)


def posterior_weights(now: Level, next_: Level) -> tuple[Tensor, Tensor, Tensor]:
    """a, b and c of q(xₛ | xₜ, x₀) = N(a xₜ + b x₀, c²), where s is the next, less noisy level.

    >>> now, clean = (Level(torch.tensor([a]), torch.tensor([s])) for a, s in ((0.6, 0.8), (1.0, 0.0)))
    >>> posterior_weights(now, clean)
    (tensor([0.]), tensor([1.]), tensor([0.]))
    """
    ratio = now.alpha / next_.alpha
    total, after = now.sigma.square(), next_.sigma.square()
    between = (total - ratio.square() * after).clamp_min(0)
    return ratio * after / total, next_.alpha * between / total, (between * after / total).sqrt()


def posterior_step(x: Tensor, data: Tensor, now: Level, next_: Level) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of q(xₛ | xₜ, x₀)."""
    of_x, of_data, deviation = posterior_weights(now, next_)
    return of_x * x + of_data * data, deviation


def target_of(predicts: Predicts, data: Tensor, noise: Tensor, level: Level) -> Tensor:
    """What the network is to answer."""
    if predicts == "noise":
        return noise
    return data if predicts == "data" else level.alpha * noise - level.sigma * data


def data_from(predicts: Predicts, answer: Tensor, x: Tensor, level: Level) -> Tensor:
    """x₀ from what the network answered for xₜ.

    >>> level = Level(torch.tensor([0.6]), torch.tensor([0.8]))
    >>> data, noise = torch.tensor([1.0]), torch.tensor([-2.0])
    >>> x = 0.6 * data + 0.8 * noise
    >>> [data_from(how, target_of(how, data, noise, level), x, level).item() for how in ("noise", "data", "velocity")]
    [1.0, 1.0, 1.0]
    """
    if predicts == "data":
        return answer
    if predicts == "noise":
        return (x - level.sigma * answer) / level.alpha
    return (level.alpha * x - level.sigma * answer) / (level.alpha.square() + level.sigma.square())


def noise_from(data: Tensor, x: Tensor, level: Level) -> Tensor:
    """ε from x₀ and xₜ."""
    return (x - level.alpha * data) / level.sigma.clamp_min(torch.finfo(x.dtype).tiny)
