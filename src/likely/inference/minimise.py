"""Damped Newton with L1 terms: minimise  E(θ) + Σ λⱼ|θⱼ|  from E, its gradient and a positive semidefinite Hessian.

Each step minimises the quadratic model (plus the L1 terms), and is damped more until the objective falls. Near the end
the last Hessian is kept: its change no longer matters, and a gradient costs far less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Energy", "Minimum", "minimise", "quadratic_l1"]

KEEP = 1e-3
"""Squared Newton decrement (distance to the optimum in standard errors) below which the Hessian is kept."""


class Energy(Protocol):
    """A smooth function with second-order information."""

    def value(self, point: Tensor, *, hessian: bool) -> tuple[float, Tensor, Tensor | None]:
        """E, ∇E and, if asked, a positive semidefinite Hessian (exact, Gauss-Newton or Fisher)."""
        ...


@dataclass(frozen=True)
class Minimum:
    """Where the search ended and how."""

    point: Tensor
    converged: bool
    unbounded: bool
    iterations: int


def minimise(energy: Energy, point: Tensor, l1: Tensor, *, max_iter: int, tol: float) -> Minimum:
    """Search from `point`. Stops once the squared Newton decrement (twice the gain still to be had) is below `tol`."""
    value, slope, hessian = energy.value(point, hessian=True)
    assert hessian is not None
    objective = value + float(l1 @ point.abs())
    first = _smallest(hessian)
    damping, fresh = 0.0, True
    for iteration in range(1, max_iter + 1):
        target = _model_minimum(hessian, slope, point, l1, damping)
        move = target - point
        gain = -float(slope @ move) - float(l1 @ (target.abs() - point.abs()))
        if gain <= tol and fresh or gain <= 0:
            # the step itself leaves an error of second order: worth taking, not worth checking beyond its value
            after, _, _ = energy.value(target, hessian=False)
            better = after + float(l1 @ target.abs()) <= objective
            unbounded = _smallest(hessian) < 1e-6 * first
            return Minimum(target if better else point, True, unbounded, iteration)
        keep = gain <= KEEP and damping == 0
        after, after_slope, after_hessian = energy.value(target, hessian=not keep)
        reached = after + float(l1 @ target.abs())
        if reached <= objective - 1e-4 * gain * (damping == 0) + 1e-13 * abs(objective):
            point, slope, objective = target, after_slope, reached
            hessian = hessian if after_hessian is None else after_hessian
            fresh = True
            damping = 0.0 if damping < 1e-10 else damping * 0.1
        else:
            if keep:
                _, _, hessian = energy.value(point, hessian=True)
                assert hessian is not None
            damping = max(damping * 10, 1e-3)
            if damping > 1e12:
                return Minimum(point, gain <= 1e-6 * max(1.0, abs(objective)), False, iteration)
    unbounded = _smallest(hessian) < 1e-6 * first
    return Minimum(point, False, unbounded, max_iter)


def _model_minimum(hessian: Tensor, slope: Tensor, point: Tensor, l1: Tensor, damping: float) -> Tensor:
    """argmin of slope·(θ − point) + ½(θ − point)ᵀH(θ − point) + Σ λ|θ|."""
    size = hessian.diagonal().clamp_min(0)
    scale = size.clamp_min(1e-12 * float(size.max()) + 1e-300)
    damped = hessian + torch.diag(scale * (damping + 1e-11))
    if not bool(l1.any()):
        return point - _solve(damped, slope)
    return quadratic_l1(damped, damped @ point - slope, l1, point)


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve a symmetric system, equilibrated, by Cholesky; by pseudo-inverse if it is singular all the same."""
    scale = matrix.diagonal().clamp_min(1e-300).rsqrt()
    balanced = matrix * torch.outer(scale, scale)
    factor, info = torch.linalg.cholesky_ex(balanced)
    if int(info) == 0:
        return scale * torch.cholesky_solve((scale * right).unsqueeze(-1), factor).squeeze(-1)
    return scale * (torch.linalg.pinv(balanced, hermitian=True, rtol=1e-10) @ (scale * right))


def quadratic_l1(matrix: Tensor, linear: Tensor, l1: Tensor, start: Tensor) -> Tensor:
    """argmin ½θᵀHθ − bᵀθ + Σ λ|θ|: accelerated proximal steps find the support, then it is solved exactly."""
    scale = matrix.diagonal().clamp_min(1e-300).rsqrt()
    balanced, right, rates = matrix * torch.outer(scale, scale), scale * linear, scale * l1
    step = 1 / float(torch.linalg.eigvalsh(balanced)[-1])
    point = ahead = start / scale
    momentum = 1.0
    for iteration in range(1, 20_001):
        moved = ahead - step * (balanced @ ahead - right)
        new = moved.sign() * (moved.abs() - step * rates).clamp_min(0)
        if float((ahead - new) @ (new - point)) > 0:  # momentum points uphill: start it anew
            momentum = 1.0
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = new + (momentum - 1) / following * (new - point)
        change = float((new - point).abs().max())
        point, momentum = new, following
        if iteration % 25 == 0 or change < 1e-14:
            polished = _polish(balanced, right, rates, point)
            if polished is not None:
                return scale * polished
            if change < 1e-14:
                break
    return scale * point


def _polish(matrix: Tensor, right: Tensor, rates: Tensor, point: Tensor) -> Tensor | None:
    """The exact solution on the support and signs of `point`, if it meets the optimality conditions."""
    free = (point != 0) | (rates == 0)
    sign = point.sign()
    exact = torch.zeros_like(point)
    if bool(free.any()):
        inner = matrix[free][:, free]
        factor, info = torch.linalg.cholesky_ex(inner)
        if int(info):
            return None
        exact[free] = torch.cholesky_solve((right - rates * sign)[free].unsqueeze(-1), factor).squeeze(-1)
    same = bool((exact.sign() == sign)[rates > 0].all())
    excess = (matrix @ exact - right).abs() - rates
    return exact if same and bool((excess[~free] <= 1e-12 * (1 + rates[~free])).all()) else None


def _smallest(hessian: Tensor) -> float:
    """The smallest curvature in directions that the data speak of, on the first Hessian's own scale."""
    scale = hessian.diagonal()
    values = torch.linalg.eigvalsh(hessian)
    seen = values[values > values[-1] * 1e-12]
    return float(seen[0]) if len(seen) and bool((scale > 0).any()) else 0.0
