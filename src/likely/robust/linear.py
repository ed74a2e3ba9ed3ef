"""The exact attack on a linear model, in any p-norm, by the dual norm.

    within a radius      max over k, ‖δ‖ₚ ≤ r  of  mₖ + wₖᵀδ  =  max over k of  mₖ + r ‖wₖ‖_q
    the smallest         min {‖δ‖ₚ : some mₖ + wₖᵀδ ≥ 0}      =  min over k of  −mₖ / ‖wₖ‖_q

mₖ(x) = (wₖ)ᵀx + bₖ are the margins of the wrong classes, differences of logits.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..core.spec import require
from ..optim.ascent import Attack, Found, Victim, require_norm, require_radius
from ..optim.ball import steepest
from ..optim.bounds import Bounds
from .deep_fool import nearest_way
from .jacobian import nearest_margins

__all__ = ["Linear"]


class Linear(Attack):
    """The strongest change within a `radius`, or without one the smallest that fools, with a small `overshoot`.

    Exact for linear classifiers and regressors, and refused for others. With `bounds` it is exact for norm=inf, where
    every number of a row moves by itself.

    >>> from likely import Classifier
    >>> from likely.robust import attack
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 2.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> found = attack(model, X, y, Linear(norm=1))
    >>> found.success.all(), (found.perturbed != X).sum(1).tolist()  # one column is moved
    (np.True_, [1, 1, 1, 1])
    """

    radius: float | None = None
    norm: float | Literal["inf"] = 2.0
    overshoot: float = 1e-4

    def validate(self) -> None:
        if self.radius is not None:
            require_radius(self)
        require_norm(self)
        require(0 < self.overshoot < math.inf, self, "overshoot", "a positive fraction, such as 1e-4")

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Found:
        if not getattr(victim, "linear", False):
            raise SpecError("Linear is exact for one linear model, and this is another: use DeepFool or PGD.")
        bounded = bounds.low is not None or bounds.high is not None
        if bounded and not (math.isinf(self.p) and self.radius is not None):
            raise SpecError(f"{self!r} has no closed form inside bounds: use norm=inf with a radius, or PGD.")
        margins, gradients, before = nearest_margins(victim, x, y, 1 << 30)
        if self.radius is None:
            move = (1 + self.overshoot) * nearest_way(margins, gradients, self.p)
        else:
            move = self._strongest(margins, gradients, x, bounds)
        move = torch.where((before > 0).reshape(-1, *[1] * (x.ndim - 1)), 0.0, move)
        point = bounds.clip(x + move)
        with torch.no_grad():
            margin = victim.evaluate(point, y)[1]
        return Found(point, margin, (before <= 0).long())

    def _strongest(self, margins: Tensor, gradients: Tensor, x: Tensor, bounds: Bounds) -> Tensor:
        assert self.radius is not None
        flat = gradients.flatten(0, 1)
        origins = x.repeat_interleave(gradients.shape[1], 0)
        moves = bounds.clip(origins + self.radius * steepest(flat, self.p)) - origins
        gains = (flat * moves).flatten(1).sum(1).view_as(margins)
        best = (margins + gains).argmax(1)
        return moves.view_as(gradients)[torch.arange(len(x), device=x.device), best]
