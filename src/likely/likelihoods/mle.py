"""Weighted maximum likelihood by numerical optimisation: the default behind every likelihood's `weighted_mle`.

    η̂ = argmax Σᵢ wᵢ log p(yᵢ | η)

Damped Newton on η with the exact Hessian of automatic differentiation; all k sets of weights at once. An optimum at
infinity (a Bernoulli that only saw ones) is stopped at the edge of a box around the first guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .weighted import as_given, clean

if TYPE_CHECKING:
    from .base import Likelihood

__all__ = ["ascend", "maximise", "newton"]

BOX = 20.0
"""How far from the first guess an estimate may lie, in units: a factor of e²⁰ for parameters on a log scale."""

LONGEST = 4.0
"""The longest step in one coordinate, in units."""


def maximise(likelihood: Likelihood, y: Tensor, weight: Tensor, *, steps: int = 200, tol: float = 1e-10) -> Tensor:
    """The weighted maximum-likelihood η: (size,) for weights (n,), (k, size) for weights (n, k).

    >>> from likely.likelihoods import Poisson
    >>> maximise(Poisson(), torch.tensor([1.0, 3.0]), torch.ones(2)).exp()
    tensor([2.])
    """
    targets, fraction = clean(likelihood, y, weight)
    return as_given(newton(likelihood, targets, fraction, steps=steps, tol=tol), weight)


def newton(likelihood: Likelihood, y: Tensor, fraction: Tensor, *, steps: int = 200, tol: float = 1e-10) -> Tensor:
    """η of shape (k, size) for clean data: y in float64, fractions (n, k) whose columns sum to 1."""
    start, unit = likelihood.start(y, fraction)
    counted = (fraction > 0).any(1)
    targets, weights = y[counted], fraction[counted].T  # (k, n)

    def objective(eta: Tensor) -> Tensor:  # (k, size) -> (k,)
        eta_by_row = eta.unsqueeze(-2).expand(*weights.shape, eta.shape[-1])
        return (weights * likelihood.log_prob(eta_by_row, targets)).sum(-1)

    return ascend(objective, start, unit, steps=steps, tol=tol)


def ascend(
    objective: Callable[[Tensor], Tensor], start: Tensor, unit: Tensor, *, steps: int = 200, tol: float = 1e-10
) -> Tensor:
    """η of shape (k, size) where each of k objectives, of shape (k,), is largest.

    It works on z = (η − start) / unit, so that its tolerances mean the same for data of any scale.

    >>> ascend(lambda eta: -(eta[:, 0] - 3).square(), torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[3.]])
    """
    size = start.shape[-1]
    eye = torch.eye(size, dtype=start.dtype, device=start.device)

    def derivatives(z: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            point = z.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(objective(start + unit * point).sum(), point, create_graph=True)
            rows = [_gradient(gradient[:, j].sum(), point) for j in range(size)]
        return gradient.detach().nan_to_num(), -torch.stack(rows, 1).detach().nan_to_num()

    z = torch.zeros_like(start)
    with torch.no_grad():
        value = objective(start)
    damping = torch.full_like(value, 1e-3)
    for _ in range(steps):
        gradient, curvature = derivatives(z)
        stuck = (z.abs() >= BOX) & (gradient * z > 0)  # at the edge of the box, and drawn outwards
        gradient = torch.where(stuck, 0.0, gradient)
        curvature = torch.where(stuck.unsqueeze(-1) | stuck.unsqueeze(-2), eye, curvature)
        if bool(((gradient.abs().amax(-1) < tol) | (damping > 1e12)).all()):
            break
        eigenvalues, vectors = torch.linalg.eigh(0.5 * (curvature + curvature.mT))
        convex = (vectors * (eigenvalues.abs().clamp_min(1e-10) + damping.unsqueeze(-1)).unsqueeze(-2)) @ vectors.mT
        step = torch.linalg.solve(convex, gradient).clamp(-LONGEST, LONGEST)
        proposal = (z + step).clamp(-BOX, BOX)
        with torch.no_grad():
            reached = objective(start + unit * proposal)
        better = reached >= value - 1e-13 * (1 + value.abs())  # rounding must not stop the last steps
        z = torch.where(better.unsqueeze(-1), proposal, z)
        value = torch.where(better, reached, value)
        damping = torch.where(better, damping * 0.1, damping * 10).clamp_min(1e-14)
    return start + unit * z


def _gradient(value: Tensor, point: Tensor) -> Tensor:
    if not value.requires_grad:  # a gradient that is constant in η
        return torch.zeros_like(point)
    return torch.autograd.grad(value, point, retain_graph=True, materialize_grads=True)[0]
