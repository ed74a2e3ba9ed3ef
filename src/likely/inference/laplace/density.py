"""Laplace's approximation of a density p(x; θ): a normal distribution at the mode with the curvature there.

    p(θ | data) ≈ Normal(θ̂, H⁻¹),   H = −∇² log p(θ̂ | data),   log p(data) ≈ log p(data, θ̂) + d/2 log 2π − ½ log |H|

There is no η to linearise, so answers average over draws of θ.
"""

from __future__ import annotations

import math

import torch

from ...core.random import spread
from ..gaussian import Gaussian
from ..log_posterior import LogPosterior
from ..mode import mode_of
from ..parameters import stacked
from ..posterior import Posterior
from ..precondition import hessian
from ..problem import Inference, Problem

__all__ = ["laplace_of_density"]

LEAST = 1e-10
"""Curvature, in units of the largest, below which a direction counts as held by nothing."""


def laplace_of_density(problem: Problem, by: Inference | None, draws: int, *, full: bool) -> tuple[Posterior, int]:
    """Draws around the mode (found `by` an inference, or by several descents), and how many directions are free."""
    target = LogPosterior(problem)
    if by is None:
        centre = mode_of(target)
    else:
        parameters, _ = by.fit(problem).member(0)
        centre = target.parameters.flat(parameters)
    curvature = hessian(target.value_and_grad, centre)
    values, vectors = torch.linalg.eigh(curvature if full else torch.diag(curvature.diagonal()))
    held = values > LEAST * float(values[-1].clamp_min(0))
    # the symmetric root: eigenvectors themselves have any sign, and are any in their plane where two values are alike
    gaussian = Gaussian(centre, factor=vectors[:, held] * values[held].rsqrt() @ vectors[:, held].T)
    generator = torch.Generator().manual_seed(spread(problem.seed, 1)[0])
    theta = gaussian.draw(draws, generator)
    log_prior = problem.log_prior(target.parameters.named(centre))  # with its constant
    log_joint = float(target.log_likelihood(centre.unsqueeze(0))) + float(log_prior)
    rank = int(held.sum())
    info = {
        "log_joint": log_joint,
        "log_evidence": log_joint + 0.5 * rank * math.log(2 * math.pi) - 0.5 * float(values[held].log().sum()),
    }
    members, buffers = stacked(target.module, target.parameters.named(theta), draws)
    return Posterior(target.module, members, buffers, info=info), len(centre) - rank
