"""Damped Newton with L1 terms: minimise  E(θ) + Σ λⱼ|θⱼ|  from E, its gradient and a positive semidefinite Hessian.

Each step minimises the quadratic model (plus the L1 terms), and is damped more until the objective falls. Near the end
the last Hessian is kept: its change no longer matters, and a gradient costs far less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from .quadratic_l1 import equilibrated, quadratic_l1

__all__ = ["Energy", "Minimum", "minimise"]

GONE, FADING = 1e-9, 1e-6
"""Fractions of the first curvature below which the optimum lies at infinity: stop at once, or say so at the end."""

KEEP = 1e-3
"""Squared Newton decrement (distance to the optimum in standard errors) below which the Hessian is kept."""


CAUTION = 1e-2
"""The first damping where E is not convex."""

ROUGH, AGAIN = 10, 5
"""Steps by Gauss-Newton's Hessian before the whole one is asked for, and between tries where that is not positive."""


class Energy(Protocol):
    """A smooth function with second-order information."""

    def value(self, point: Tensor, *, hessian: bool) -> tuple[float, Tensor, Tensor | None]:
        """E, ∇E and, if asked, a positive semidefinite Hessian (exact, Gauss-Newton or Fisher)."""
        ...


class Curved(Energy, Protocol):
    """One that is not convex, whose positive semidefinite Hessian leaves something out."""

    def left_out(self, point: Tensor) -> Tensor:
        """What it leaves out; not numbers where that cannot be had."""
        ...


@dataclass(frozen=True)
class Minimum:
    """Where the search ended and how."""

    point: Tensor
    converged: bool
    unbounded: bool
    iterations: int


def minimise(
    energy: Energy | Curved, point: Tensor, l1: Tensor, *, max_iter: int, tol: float, convex: bool = True
) -> Minimum:
    """Search from `point`. Stops once the squared Newton decrement (twice the gain still to be had) is below `tol`.

    Where E is not convex, a whole step of the quadratic model may lower E and yet lead to where every gradient is gone
    (saturated units): there the search begins damped, and less so as the model proves right (Levenberg, Marquardt).
    Gauss-Newton's Hessian can stay wrong by any factor, and its steps then crawl: late ones take the whole Hessian.
    """
    whole = None if convex else _Whole(energy)
    value, gradient, hessian = energy.value(point, hessian=True)
    assert hessian is not None
    objective = value + float(l1 @ point.abs())
    first = _smallest(hessian)
    damping, before, plain = 0.0 if convex else CAUTION, math.inf, math.inf
    for iteration in range(1, max_iter + 1):
        curvature = _smallest(hessian)
        if convex and curvature < GONE * first:
            return Minimum(point, True, True, iteration)
        target = _model_minimum(_damped(hessian, damping, convex), gradient, point, l1)
        gain = -float(gradient @ (target - point)) - float(l1 @ (target.abs() - point.abs()))
        plain = gain if damping == 0 else plain
        rounding = 1e-11 * abs(objective) if damping else 0.0  # below it, whether a damped step helped cannot be seen
        if gain * (1 + damping) <= max(tol, rounding):
            # the step leaves an error of second order: worth taking, not worth a further look
            return Minimum(target if gain > 0 else point, True, curvature < FADING * first, iteration)
        keep = gain <= KEEP and gain <= 0.01 * before and damping == 0
        before = gain
        after, after_gradient, after_hessian = energy.value(target, hessian=not keep)
        reached = after + float(l1 @ target.abs())
        if reached <= objective - 1e-4 * gain * (damping == 0) + 1e-13 * abs(objective):
            move = target - point
            promised = gain - 0.5 * float(move @ hessian @ move)
            kept = objective - reached + 1e-12 * abs(objective)
            if kept < 0.25 * promised:  # too far: the model is too flat here
                damping = max(damping * 4, 1e-3)
            elif kept > 0.75 * promised:
                damping = 0.0 if damping < 1e-10 else damping * 0.1
            point, gradient, objective = target, after_gradient, reached
            hessian = hessian if after_hessian is None else after_hessian
            if whole is not None and after_hessian is not None:
                hessian = whole(hessian, point, iteration)
            continue
        if keep:
            _, _, hessian = energy.value(point, hessian=True)
            assert hessian is not None
            hessian = hessian if whole is None else whole(hessian, point, iteration)
        damping = max(damping * 10, 1e-3)
        if damping > 1e12:
            break
    # at a kink gradients jump and steps crawl: what counts then is that next to nothing is left to gain
    small = plain <= 1e-6 * max(1.0, abs(objective))
    return Minimum(point, small, _smallest(hessian) < FADING * first, iteration)


class _Whole:
    """Gauss-Newton's Hessian with what it leaves out, once that is worth its price and where the sum is positive."""

    def __init__(self, energy: Any) -> None:
        self.energy, self.next = energy, ROUGH

    def __call__(self, hessian: Tensor, point: Tensor, iteration: int) -> Tensor:
        if iteration < self.next:
            return hessian
        whole = hessian + self.energy.left_out(point)
        factor, info = torch.linalg.cholesky_ex(equilibrated(whole)[0])
        if int(info) == 0 and float(factor.diagonal().min()) > 1e-5:
            return whole
        self.next = iteration + AGAIN
        return hessian


def _damped(hessian: Tensor, damping: float, convex: bool) -> Tensor:
    """H + damping · D: the size of each own curvature (Marquardt), or of the largest one for all (Levenberg).

    The first does not depend on units. Where E is not convex a parameter without curvature may have some elsewhere, and
    only the second holds it.
    """
    if not damping:
        return hessian
    size = hessian.diagonal().clamp_min(0)
    largest = size.max()
    scale = size.clamp_min(1e-12 * float(largest) + 1e-300) if convex else largest.expand_as(size)
    return hessian + torch.diag(scale * damping)


def _model_minimum(hessian: Tensor, gradient: Tensor, point: Tensor, l1: Tensor) -> Tensor:
    """argmin of gradient·(θ − point) + ½(θ − point)ᵀH(θ − point) + Σ λ|θ|."""
    if not bool(l1.any()):
        return point - _solve(hessian, gradient)
    return quadratic_l1(hessian, hessian @ point - gradient, l1, point)


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    """Solve a symmetric system, equilibrated, by Cholesky; along the directions it has, if it is singular."""
    balanced, scale = equilibrated(matrix)
    factor, info = torch.linalg.cholesky_ex(balanced)
    if int(info) == 0 and float(factor.diagonal().min()) > 1e-5:
        return scale * torch.cholesky_solve((scale * right).unsqueeze(-1), factor).squeeze(-1)
    return scale * (torch.linalg.pinv(balanced, hermitian=True, rtol=1e-10) @ (scale * right))


def _smallest(hessian: Tensor) -> float:
    """The smallest curvature in directions that the data determine; for large systems, of a single parameter."""
    values = torch.linalg.eigvalsh(hessian) if len(hessian) <= 300 else hessian.diagonal().sort().values
    seen = values[values > values[-1].clamp_min(0) * 1e-10]
    return float(seen[0]) if len(seen) else 0.0
