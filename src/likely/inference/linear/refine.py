"""The last digits of a long smooth fit: quasi-Newton steps from a point near the optimum, with a Hessian of few rows.

    θ ← θ − B∇E(θ),   B₀ = H⁻¹ of the sample,   B learns from each pair (Δθ, Δ∇E)          (L-BFGS in that metric)

Each step costs one gradient, a fraction of a full Hessian, and the sample's Hessian makes all directions alike.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .minimise import Energy, Minimum
from .quadratic_l1 import equilibrated

__all__ = ["refine"]


def refine(energy: Energy, point: Tensor, hessian: Tensor, *, tol: float, passes: int = 20) -> Minimum | None:
    """The minimum near `point`, or None if these steps do not lead there: then Newton's own should be taken."""
    balanced, scale = equilibrated(hessian)
    factor, info = torch.linalg.cholesky_ex(balanced)
    if int(info) or float(factor.diagonal().min()) < 1e-4:
        return None

    def metric(vector: Tensor) -> Tensor:
        return scale * torch.cholesky_solve((scale * vector).unsqueeze(-1), factor).squeeze(-1)

    pairs: list[tuple[Tensor, Tensor]] = []
    value, gradient, _ = energy.value(point, hessian=False)
    for iteration in range(1, passes + 1):
        move = -_two_loop(gradient, pairs, metric)
        gain = -float(gradient @ move)
        if not gain >= 0:
            return None
        target = point + move
        if gain <= tol:
            return Minimum(target, True, False, iteration)
        after, after_gradient, _ = energy.value(target, hessian=False)
        if not after <= value - 1e-4 * gain + 1e-13 * abs(value):
            return None
        change = after_gradient - gradient
        if float(change @ move) > 0:
            pairs.append((move, change))
        point, value, gradient = target, after, after_gradient
    return None


def _two_loop(vector: Tensor, pairs: list[tuple[Tensor, Tensor]], metric: Callable[[Tensor], Tensor]) -> Tensor:
    """B·vector, from the pairs of moves and gradient changes so far."""
    weights = []
    for move, change in reversed(pairs):
        weight = (move @ vector) / (move @ change)
        vector = vector - weight * change
        weights.append(weight)
    vector = metric(vector)
    for (move, change), weight in zip(pairs, reversed(weights), strict=True):
        vector = vector + (weight - (change @ vector) / (move @ change)) * move
    return vector
