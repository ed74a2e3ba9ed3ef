"""DeepFool: the smallest change that fools, by steps to the nearest face of the linearised boundary.

    k = argmin |mₖ(xₜ)| / ‖∇mₖ(xₜ)‖_q,    δ ← δ + |mₖ| / ‖∇mₖ‖_q · argmax {∇mₖᵀd : ‖d‖ₚ ≤ 1},    xₜ₊₁ = x + (1 + o) δ

mₖ are the margins of the wrong classes, o an overshoot that crosses the boundary. On a linear model one step is exact.
Where a margin is folded, steps in norms below 2 would go to and fro over the fold, along the input that counts most: a
row that would go back takes the step of the 2-norm instead, whose other inputs lead along the fold.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from ..core.spec import is_integer, require
from ..optim.ascent import Attack, Found, Victim, require_norm
from ..optim.ball import dual, sizes, steepest
from ..optim.bounds import Bounds
from .jacobian import nearest_margins

__all__ = ["DeepFool", "nearest_way"]

TINY = 1e-30
NEAR = 4
"""Classes that are looked at from the second step on: near a boundary the others are far."""
PUSH = 3e-3
"""How much further than its linear model says a row goes, as a fraction of its way so far: steps that only come nearer
and nearer to a boundary would not cross it."""


class DeepFool(Attack):
    """Up to `steps` linearised steps in any p-norm, the first over the `candidates` classes whose margins are largest.

    >>> from likely import Classifier
    >>> from likely.robust import attack
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> attack(model, X, y, DeepFool(overshoot=0.02)).l2.round(3)  # the boundary is at 1.5
    array([1.53, 0.51, 0.51, 1.53])
    """

    norm: float | Literal["inf"] = 2.0
    steps: int = 50
    overshoot: float = 0.02
    candidates: int = 10

    def validate(self) -> None:
        require_norm(self)
        require(is_integer(self.steps), self, "steps", "an integer, 1 or more")
        require(0 < self.overshoot < math.inf, self, "overshoot", "a positive fraction, such as 0.02")
        require(is_integer(self.candidates), self, "candidates", "an integer, 1 or more")

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Found:
        nearest = Found(x.clone(), x.new_full((len(x),), -math.inf), torch.zeros(len(x), dtype=torch.long))
        left, origin, own, point = torch.arange(len(x), device=x.device), x, y, x
        total, last = torch.zeros_like(x), torch.zeros_like(x)
        for step in range(self.steps):
            ways = min(self.candidates, NEAR) if step else self.candidates
            margins, gradients, margin = nearest_margins(victim, point, own, ways)
            nearest.margin[left] = margin
            stays = margin <= 0
            if not bool(stays.all()):
                left, origin, own = left[stays], origin[stays], own[stays]
                total, last = total[stays], last[stays]
                margins, gradients = margins[stays], gradients[stays]
                if not len(left):
                    return nearest
            push = PUSH * sizes(total, self.p)
            way = nearest_way(margins, gradients, self.p, push)
            back = (way * last).flatten(1).sum(1) < 0
            if self.p < 2 and bool(back.any()):
                way[back] = nearest_way(margins[back], gradients[back], 2.0, push[back])
            total, last = total + way, way
            point = bounds.clip(origin + (1 + self.overshoot) * total)
            nearest.point[left] = point
            nearest.steps[left] += 1
        with torch.no_grad():
            nearest.margin[left] = victim.evaluate(point, own)[1]
        return nearest


def nearest_way(margins: Tensor, gradients: Tensor, norm: float, push: Tensor | float = 0.0) -> Tensor:
    """The shortest change (n, …) that brings one of the linearised margins (n, ways) to 0, and a `push` (n,) longer."""
    slopes = torch.linalg.vector_norm(gradients.flatten(2), dual(norm), dim=2)
    distances = torch.where(slopes > 0, margins.abs() / slopes.clamp_min(TINY), math.inf)
    nearest = distances.argmin(1)
    rows = torch.arange(len(nearest), device=nearest.device)
    distance = torch.where(distances[rows, nearest].isfinite(), distances[rows, nearest] + push, 0.0)
    gradient = gradients[rows, nearest]
    return distance.reshape(-1, *[1] * (gradient.ndim - 1)) * steepest(gradient, norm)
