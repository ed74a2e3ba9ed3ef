"""A quadratic with L1 terms, minimised exactly:  argmin ½θᵀHθ − bᵀθ + Σ λⱼ|θⱼ|,  H positive semidefinite.

Accelerated proximal steps come near; from there an active-set search (feature-sign search) ends after finitely many
linear systems; from a start that breaks few of the conditions, as the last step of Newton's method does, the search
alone does it. On the parameters that are not 0, with their signs s, the minimum solves  H θ = b − λs. A step goes
towards it until a parameter reaches 0, which then leaves; where all keep their sign, the one whose gradient exceeds
its λ most enters; if there is none, that is the optimum. H may be singular, as of one-hot columns beside an intercept:
steps are then the shortest ones that solve the system, or lead along directions that cost nothing but L1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["equilibrated", "quadratic_l1"]

FIRST, MOST = 25, 20_000
"""Proximal steps before the first active-set search (each later one after twice as many), and at most."""

FEW = 8
"""Parameters at 0 that may want to leave it, for the search to begin without proximal steps: it takes one at a time."""

SLACK = 1e-10
"""How far a gradient may exceed its λ at the optimum, relative to 1 + λ."""


def equilibrated(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """DHD with ones on the diagonal, and D; a parameter that the data leave open (a column of zeros) gets D = 0."""
    size = matrix.diagonal()
    seen = size > 1e-200
    scale = torch.where(seen, size.clamp_min(1e-300).rsqrt(), 0.0)
    return matrix * torch.outer(scale, scale) + torch.diag((~seen).to(matrix)), scale


def quadratic_l1(matrix: Tensor, linear: Tensor, l1: Tensor, start: Tensor) -> Tensor:
    """The minimum, searched from `start`.

    >>> one = torch.ones(1, 1, dtype=torch.float64)
    >>> quadratic_l1(one, 3 * one[0], one[0], torch.zeros(1, dtype=torch.float64))  # 3 shrunk by 1
    tensor([2.], dtype=torch.float64)
    """
    balanced, scale = equilibrated(matrix)
    right, rates = scale * linear, scale * l1
    point = torch.where(scale > 0, start / scale, 0.0)
    if _nearly(balanced, right, rates, point):
        point, optimal = _active_set(balanced, right, rates, point)
        if optimal:
            return scale * point
    step, ahead = 1 / float(torch.linalg.eigvalsh(balanced)[-1]), point
    momentum, next_search = 1.0, FIRST
    for iteration in range(1, MOST + 1):
        moved = ahead - step * (balanced @ ahead - right)
        new = moved.sign() * (moved.abs() - step * rates).clamp_min(0)
        if float((ahead - new) @ (new - point)) > 0:  # momentum points uphill: start it anew
            momentum = 1.0
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = new + (momentum - 1) / following * (new - point)
        change = float((new - point).abs().max())
        point, momentum = new, following
        if iteration == next_search or change < 1e-14:
            point, optimal = _active_set(balanced, right, rates, point)
            if optimal or change < 1e-14:
                break
            ahead, momentum, next_search = point, 1.0, 2 * next_search
    return scale * point


def _nearly(matrix: Tensor, right: Tensor, rates: Tensor, point: Tensor) -> bool:
    """Whether a point that is not 0 has few parameters at 0 whose gradient exceeds their λ."""
    resting = point == 0
    excess = (matrix @ point - right).abs() > rates
    return bool((~resting & (rates > 0)).any()) and int((excess & resting).sum()) <= FEW


def _active_set(matrix: Tensor, right: Tensor, rates: Tensor, point: Tensor) -> tuple[Tensor, bool]:
    """Where steps of the search lead, never uphill, and whether that is the optimum. Steps are bounded in number."""
    point, sign = point.clone(), point.sign()
    free = (sign != 0) | (rates == 0)
    entered = -1
    for _ in range(2 * min(len(point), 200) + 10):
        index = free.nonzero().squeeze(-1)
        inner = matrix[index][:, index]
        move, finite = _correction(inner, (right - rates * sign)[index] - inner @ point[index])
        length, first = _crossing(point[index], move, sign[index])
        if not finite and length == math.inf:
            return point, False
        point[index] += min(length, 1.0 if finite else math.inf) * move
        if length < 1 or not finite:
            leaving = int(index[first])
            if leaving == entered:  # it came in and went out without a step: let the proximal steps decide
                return point, False
            point[leaving], sign[leaving], free[leaving] = 0.0, 0.0, False
            continue
        gradient = matrix @ point - right
        excess = torch.where(free, -math.inf, (gradient.abs() - rates) / (1 + rates))
        entered = int(excess.argmax())
        if float(excess[entered]) <= SLACK:
            return point, True
        sign[entered], free[entered] = -gradient[entered].sign(), True
    return point, False


def _correction(inner: Tensor, gap: Tensor) -> tuple[Tensor, bool]:
    """The shortest move that closes the gap; if none does, a direction without curvature along it, and False."""
    factor, info = torch.linalg.cholesky_ex(inner)
    if int(info) == 0 and (not len(inner) or float(factor.diagonal().min()) > 1e-5):
        return torch.cholesky_solve(gap.unsqueeze(-1), factor).squeeze(-1), True
    values, vectors = torch.linalg.eigh(inner)
    curved = values > 1e-10 * values[-1]
    turned = vectors.mT @ gap
    left = vectors @ torch.where(curved, 0.0, turned)
    if float(left.abs().max()) > 1e-9 * (1 + float(gap.abs().max())):
        return left, False
    return vectors @ torch.where(curved, turned / values, 0.0), True


def _crossing(values: Tensor, move: Tensor, sign: Tensor) -> tuple[float, int]:
    """What part of a move brings the first value with a sign to 0 (∞ if none), and which value that is."""
    towards = move * sign < 0
    if not bool(towards.any()):
        return math.inf, -1
    length = torch.where(towards, -values / move, math.inf)
    first = int(length.argmin())
    return float(length[first]), first
