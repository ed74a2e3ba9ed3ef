"""Carlini and Wagner's attack: a small change that fools, by descent on its size and on the margin together.

    min over δ of  ‖δ‖₂² / u² + c · max(κ − m(x + δ), 0)

m is the margin, κ how far beyond the boundary to go; c is found for each row by bisection: the smallest that fools.
u is the range of X, so that c does not depend on its units, but for a row no more than ten times its first-order
distance (κ − m(x)) / ‖∇m(x)‖₂ to where it goes: columns may have ranges that are millions of one another.

Steps that leave the bounds end at them. (The paper's way, x′ = middle + half · tanh(w), has no gradient at a bound,
where most pixels are: they would need thousands of steps to leave it.)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..core.spec import is_integer, require
from ..optim.adaptive import Adam
from ..optim.ascent import FLAT, Attack, Found, Victim
from ..optim.ball import sizes
from ..optim.bounds import Bounds

__all__ = ["CarliniWagner"]

LARGEST = 1e10
REACH = 10.0
"""How many times as far as the boundary is, to first order, u may be."""


class CarliniWagner(Attack):
    """`searches` values of c for each row, each with `steps` steps of Adam, at `lr` times the range of X or less.

    It takes the 2-norm, and is the strongest and slowest attack of small changes.

    >>> from likely import Classifier
    >>> from likely.robust import attack
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> attack(model, X, y, CarliniWagner()).l2.round(1)  # the boundary is at 1.5
    array([1.5, 0.5, 0.5, 1.5])
    """

    steps: int = 100
    searches: int = 6
    lr: float = 0.01
    confidence: float = 0.0
    initial: float = 1.0

    @property
    def p(self) -> float:
        """It takes the 2-norm."""
        return 2.0

    @classmethod
    def example(cls) -> CarliniWagner:
        return cls(steps=5, searches=2)

    def validate(self) -> None:
        for name in ("steps", "searches"):
            require(is_integer(getattr(self, name)), self, name, "an integer, 1 or more")
        for name in ("lr", "initial"):
            require(0 < getattr(self, name) < math.inf, self, name, "a positive number")
        require(0 <= self.confidence < math.inf, self, "confidence", "0 or more")

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Found:
        with torch.no_grad():
            _, margin = victim.evaluate(x, y)
        nearest = Found(x.clone(), margin.clone(), torch.zeros(len(x), dtype=torch.long))
        left = (margin <= 0).nonzero().ravel()
        if len(left):
            self._search(victim, x[left], y[left], bounds, nearest, left)
        return nearest

    def _search(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds, nearest: Found, left: Tensor) -> None:
        """Bisection for c, row by row and all rows at once; the smallest changes that fool are written to `nearest`."""
        weight = x.new_full((len(x),), self.initial)
        low, high = torch.zeros_like(weight), torch.full_like(weight, LARGEST)
        smallest = torch.full_like(weight, math.inf)
        for _ in range(self.searches):
            fooled = self._descend(victim, x, y, bounds, weight, smallest, nearest, left)
            high = torch.where(fooled, torch.minimum(high, weight), high)
            low = torch.where(fooled, low, torch.maximum(low, weight))
            inside = torch.where(low > 0, (low * high).sqrt(), high / 10)
            weight = torch.where(high < LARGEST, inside, weight * 10)

    def _descend(
        self,
        victim: Victim,
        x: Tensor,
        y: Tensor,
        bounds: Bounds,
        weight: Tensor,
        smallest: Tensor,
        nearest: Found,
        left: Tensor,
    ) -> Tensor:
        """One descent at these weights; which rows it fooled."""
        unit = self._unit(victim, x, y, bounds)
        moved, point = torch.zeros_like(x), x
        optimizer = Adam(self.lr).build([moved])
        fooled, lowest = torch.zeros_like(weight, dtype=torch.bool), math.inf
        for step in range(self.steps + 1):
            with torch.enable_grad():
                point = point.detach().requires_grad_()
                margin = victim.margins(point, y).max(1).values
                squares = ((point - x) / unit).flatten(1).square().sum(1)
                loss = (squares + weight * (self.confidence - margin).clamp_min(0)).sum()
            size, margin = sizes(point.detach() - x, 2), margin.detach()
            reached = (margin > 0) & (margin >= self.confidence)
            fooled |= reached
            better = reached & (size < smallest)
            smallest[better] = size[better]
            chosen = left[better]
            nearest.point[chosen], nearest.margin[chosen] = point.detach()[better], margin[better]
            if step == self.steps:
                break
            nearest.steps[left] += 1
            if step and step % max(1, self.steps // 5) == 0:
                if loss.item() > 0.9999 * lowest:
                    break  # no row has gained: neither will the next steps
                lowest = loss.item()
            (gradient,) = torch.autograd.grad(loss, point)
            moved.grad = unit * gradient
            optimizer.step()
            point = bounds.clip(x + unit * moved)
            moved.copy_((point - x) / unit)
        return fooled

    def _unit(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Tensor:
        """u of each row, of the shape of one number a row."""
        with torch.enable_grad():
            point = x.clone().requires_grad_()
            margin = victim.margins(point, y).max(1).values
            if not margin.requires_grad:
                raise SpecError(FLAT)
            (gradient,) = torch.autograd.grad(margin.sum(), point)
        whole = _range(victim, x, bounds)
        near = REACH * (self.confidence - margin.detach()) / sizes(gradient, 2)
        near = torch.where((near > 0) & near.isfinite(), near.clamp_max(whole), whole)
        return near.view(-1, *[1] * (x.ndim - 1))


def _range(victim: Victim, x: Tensor, bounds: Bounds) -> float:
    """The range of X: that of the bounds, else that of the rows and of those that the model has learned from."""
    low, high = bounds.range
    if low is not None and high is not None and math.isfinite(high - low):
        return high - low
    ends = [float(x.min()), float(x.max()), *(getattr(victim, "span", None) or ())]
    return (max(ends) - min(ends)) or max(map(abs, ends)) or 1.0
