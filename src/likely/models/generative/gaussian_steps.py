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

from .schedules import Path

__all__ = ["Level", "Predicts", "data_from", "level_at", "noise_from", "posterior_step", "target_of"]

Predicts = Literal["noise", "data", "velocity"]


class Level(NamedTuple):
    """αₜ and σₜ of each row, shaped so that they multiply rows."""

    alpha: Tensor
    sigma: Tensor


def level_at(path: Path, t: Tensor, ndim: int) -> Level:
    """The level of times (n,) for rows with so many axes, the first included."""
    wide = (-1, *(1,) * (ndim - 1))
    return Level(path.alpha(t).view(wide), path.sigma(t).view(wide))


def posterior_step(x: Tensor, data: Tensor, now: Level, next_: Level) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of q(xₛ | xₜ, x₀), where s is the next, less noisy level.

    >>> now, clean = (Level(torch.tensor([a]), torch.tensor([s])) for a, s in ((0.6, 0.8), (1.0, 0.0)))
    >>> posterior_step(torch.tensor([2.0]), torch.tensor([5.0]), now, clean)
    (tensor([5.]), tensor([0.]))
    """
    ratio = now.alpha / next_.alpha
    between = (now.sigma.square() - (ratio * next_.sigma).square()).clamp_min(0)
    total = now.sigma.square()
    mean = (ratio * next_.sigma.square() * x + next_.alpha * between * data) / total
    return mean, (between * next_.sigma.square() / total).sqrt()


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
