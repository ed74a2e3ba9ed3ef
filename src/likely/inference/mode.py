"""The mode of a density of few parameters: several short descents, the best of them followed to the top.

θ̂ = argmax log p(θ | data)
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ..core.random import spread
from ..optim import Adam
from ..optim.schedules import Linear
from .coordinates import CoordinateDensity, Coordinates
from .log_posterior import LogPosterior

__all__ = ["descended", "initialised", "mode_of"]

DESCENT = Adam(0.05, betas=(0.9, 0.99), eps=1e-12)
"""How points come near a mode."""
STARTS, FIRST = 8, 50
"""Initialisations, and steps from each, of the search for a mode before it is refined."""


def mode_of(target: LogPosterior) -> Tensor:
    """The highest of the modes found, (d,)."""
    plain = CoordinateDensity(target, Coordinates(torch.zeros_like(target.start())))
    ends = descended(plain, initialised(target, STARTS), FIRST)
    best = ends[int(target(ends).nan_to_num(nan=-torch.inf).argmax())]

    def energy(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = target.value_and_grad(torch.from_numpy(theta).to(best).unsqueeze(0))
        if not bool(value.isfinite().all() & gradient.isfinite().all()):
            return np.inf, np.zeros_like(theta)
        return -float(value), -gradient[0].double().cpu().numpy()

    lowest = minimize(energy, best.double().cpu().numpy(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return torch.from_numpy(lowest.x).to(best)


def initialised(target: LogPosterior, count: int) -> Tensor:
    """The parameters of so many new modules: (count, d)."""
    modules = (target.problem.module(seed) for seed in spread(target.problem.seed, count))
    return torch.stack([target.parameters.flat(dict(module.named_parameters())) for module in modules])


def descended(density: CoordinateDensity, theta: Tensor, steps: int) -> Tensor:
    """All points after some steps up log p, ever shorter; one that got nowhere stays where it began."""
    before, _ = density.value_and_grad(theta)
    point = theta.clone().requires_grad_()
    optimizer, rate = DESCENT.build([point]), Linear()
    for step in range(steps):
        _, gradient = density.value_and_grad(point.detach())
        point.grad = -torch.where(gradient.isfinite(), gradient, 0.0)
        for group in optimizer.param_groups:
            group["lr"] = DESCENT.lr * rate.factor(step, steps)
        optimizer.step()
    last = point.detach()
    after, _ = density.value_and_grad(last)
    return torch.where((after > before).unsqueeze(-1) & last.isfinite(), last, theta)
