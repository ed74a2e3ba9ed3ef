"""Attacks by gradient ascent inside a norm ball: FGSM, one step, and PGD, many.

    FGSM   x′ = x + r · argmax {∇L(x)ᵀδ : ‖δ‖ₚ ≤ 1}
    PGD    x₍ₜ₊₁₎ = Π( xₜ + a · argmax {∇L(xₜ)ᵀδ : ‖δ‖ₚ ≤ 1} )      Π: the nearest point of the ball and of the range
           x₍ₜ₊₁₎ = xₜ + g (cₜ − xₜ),   cₜ = argmax {∇L(xₜ)ᵀx′ : ‖x′ − x‖₁ ≤ r, x′ in the range}           for p = 1

The 1-norm has steps of Frank and Wolfe: the best change of a linear function is in one entry, and a projection would
share it out among many. What is attacked is a `Victim`: it tells the loss L of each row, and its margin, above 0 where
the row is fooled. The gradients are of the loss; what is kept is the point of the largest margin. Here are the parts
that training needs too; `likely.robust` has the attacks that look for the smallest change, and the door for fitted
models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from ..core.errors import SpecError
from ..core.spec import Spec, is_integer, require
from .ball import fill, project, steepest, uniform
from .bounds import Bounds

__all__ = ["FGSM", "PGD", "Attack", "Found", "Victim", "followed"]

FLAT = (
    "The network gives no gradient with respect to its inputs (it detaches, rounds or takes integers); attacks follow "
    "gradients."
)


class Found(NamedTuple):
    """What an attack made of rows: the points, the margin there (above 0: fooled), and how many steps it took."""

    point: Tensor
    margin: Tensor
    steps: Tensor


class Victim(Protocol):
    """What is attacked, as attacks see it; y are targets as it encoded them."""

    def evaluate(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The loss and the margin of each row, (n,) and (n,)."""

    def follow(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same, and the gradient of the loss in x, (n, …), which the next call may overwrite; see `followed`."""

    def margins(self, x: Tensor, y: Tensor) -> Tensor:
        """The margin of each way to be fooled, (n, ways): the largest is that of the row, −∞ is none."""


class Attack(Spec, axis="attack"):
    """How rows are changed so that a model errs. Radii and norms are in the units of X."""

    @property
    def p(self) -> float:
        """The p of the norm, as a number: "inf" is ∞."""
        return float(getattr(self, "norm", math.inf))

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Found:
        """What becomes of rows x of targets y inside the bounds."""
        raise NotImplementedError(f"{type(self).__name__} must perturb")


class _Radial(Attack):
    """An attack that stays within a radius."""

    radius: float
    norm: float | Literal["inf"] = "inf"

    def scaled(self, factor: float) -> Self:
        """The same attack in a ball so many times as large."""
        return self.replace(radius=factor * self.radius)

    def _ball(self, origin: Tensor, bounds: Bounds) -> Bounds | None:
        """The ball and the range as one range, where the norm is ∞."""
        if not math.isinf(self.p):
            return None
        return Bounds(bounds.clip(origin - self.radius), bounds.clip(origin + self.radius))

    def _furthest(self, origin: Tensor, gradient: Tensor, bounds: Bounds) -> Tensor:
        """The point of the ball along whose way a linear function with this gradient rises most, inside the range."""
        room = bounds.room(origin, gradient) if self.p == 1 else None
        if room is not None:
            return bounds.clip(origin + fill(gradient, room, self.radius))  # which rounding may leave
        return bounds.clip(origin + self.radius * steepest(gradient, self.p))

    def _move(
        self, origin: Tensor, point: Tensor, gradient: Tensor, size: float, bounds: Bounds, ball: Bounds | None = None
    ) -> Tensor:
        """A step of this size, and back to the ball and the range."""
        if ball is not None:
            return torch.add(point, gradient.sign(), alpha=size).clamp_(*ball)
        if self.p == 1:
            return torch.lerp(point, self._furthest(origin, gradient, bounds), min(1.0, size / self.radius))
        change = torch.add(point, steepest(gradient, self.p), alpha=size).sub_(origin)
        moved = project(change, self.radius, self.p).add_(origin)
        return bounds.clip(moved)  # towards the origin, so not out of the ball


class FGSM(_Radial):
    """The fast gradient (sign) method: one step as long as the ball allows, in any p-norm.

    >>> from likely import Classifier
    >>> from likely.robust import attack
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> attack(model, X, y, FGSM(0.8)).perturbed.ravel()
    array([0.8, 1.8, 1.2, 2.2])
    """

    @classmethod
    def example(cls) -> FGSM:
        return cls(0.1)

    def validate(self) -> None:
        require_radius(self)
        require_norm(self)

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Found:
        _, before, gradient = victim.follow(x, y)
        point = self._furthest(x, gradient, bounds)
        point = torch.where(_beside(before > 0, x), x, point)
        with torch.no_grad():
            _, margin = victim.evaluate(point, y)
        return Found(point, margin, (before <= 0).long())

    def ascend(self, gradient: Callable[[Tensor], Tensor], x: Tensor, bounds: Bounds) -> Tensor:
        """The changed rows of a batch, for training."""
        return self._furthest(x, gradient(x), bounds)


class PGD(_Radial):
    """Projected gradient ascent: `steps` steps of `step_size` inside the ball, from `restarts` starts.

    The first start is x itself, and its first step that of FGSM, so that PGD is at least as strong; the others are
    drawn from the ball. A row is left alone once it is fooled, and ends where its margin was largest if it never is.
    The norm is ∞, 2 or 1. `step_size="auto"` is 2.5 · radius / steps: far enough to reach any place of the ball. In the
    1-norm a step goes the fraction step_size / radius of the way to the best corner of the ball; "auto" is 2/(t + 2).

    >>> from likely import Classifier
    >>> from likely.robust import attack
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> found = attack(model, X, y, PGD(0.8, steps=5), random_state=0)
    >>> found.success.tolist(), found.linf.round(6).tolist()
    ([False, True, True, False], [0.8, 0.8, 0.8, 0.8])
    """

    steps: int = 40
    step_size: float | Literal["auto"] = "auto"
    restarts: int = 1

    @classmethod
    def example(cls) -> PGD:
        return cls(0.1, steps=2)

    def validate(self) -> None:
        require_radius(self)
        require_norm(self)
        require(self.p in (1, 2, math.inf), self, "norm", "inf, 2 or 1")
        require(is_integer(self.steps), self, "steps", "an integer, 1 or more")
        sized = self.step_size == "auto" or (not isinstance(self.step_size, str) and 0 < self.step_size < math.inf)
        require(sized, self, "step_size", 'a positive number, or "auto"')
        require(is_integer(self.restarts), self, "restarts", "an integer, 1 or more")

    def scaled(self, factor: float) -> Self:
        """The same attack in a ball so many times as large, with steps to match.

        >>> PGD(0.3, steps=5, step_size=0.1).scaled(0.5)
        PGD(radius=0.15, steps=5, step_size=0.05)
        """
        step_size = self.step_size if isinstance(self.step_size, str) else factor * self.step_size
        return super().scaled(factor).replace(step_size=step_size)

    def size(self, step: int) -> float:
        """How long this step is, the first of them 0."""
        if not isinstance(self.step_size, str):
            return self.step_size
        return 2 * self.radius / (step + 2) if self.p == 1 else 2.5 * self.radius / self.steps

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds) -> Found:
        strongest = Found(x.clone(), x.new_full((len(x),), -math.inf), torch.zeros(len(x), dtype=torch.long))
        left = torch.arange(len(x), device=x.device)
        for restart in range(self.restarts):
            if len(left):
                left = self._climb(victim, x, y, bounds, strongest, left, first=restart == 0)
        return strongest

    def _climb(
        self, victim: Victim, x: Tensor, y: Tensor, bounds: Bounds, strongest: Found, left: Tensor, *, first: bool
    ) -> Tensor:
        """One start of the rows `left`; what is better than before goes to `strongest`. Gives those still left."""
        origin, own, kept, best = x[left], y[left], strongest.point[left], strongest.margin[left]
        steps, ball = strongest.steps[left], self._ball(origin, bounds)
        point = origin if first else bounds.clip(origin + uniform(origin, self.radius, self.p))
        for step in range(self.steps + 1):
            if step < self.steps:
                _, margin, gradient = victim.follow(point, own)
            else:
                with torch.no_grad():
                    _, margin = victim.evaluate(point, own)
            better = margin > best
            if bool(better.all()):  # as nearly always: nothing is copied
                kept, best = point, margin
            else:
                kept, best = torch.where(_beside(better, x), point, kept), torch.where(better, margin, best)
            fooled = bool((margin > 0).any())
            if fooled or step == self.steps:
                strongest.point[left], strongest.margin[left], strongest.steps[left] = kept, best, steps + step
            if fooled:
                stays = margin <= 0
                left, origin, own, kept, best = (part[stays] for part in (left, origin, own, kept, best))
                point, gradient, steps = point[stays], gradient[stays], steps[stays]
                if not len(left):
                    break
                ball = self._ball(origin, bounds)
            if step == 0 and first:
                point = self._furthest(origin, gradient, bounds)
            elif step < self.steps:
                point = self._move(origin, point, gradient, self.size(step), bounds, ball)
        return left

    def ascend(self, gradient: Callable[[Tensor], Tensor], x: Tensor, bounds: Bounds) -> Tensor:
        """The changed rows of a batch, for training: from a point of the ball, and without a look at who is fooled."""
        point, ball = bounds.clip(x + uniform(x, self.radius, self.p)), self._ball(x, bounds)
        for step in range(self.steps):
            point = self._move(x, point, gradient(point), self.size(step), bounds, ball)
        return point


def followed(victim: Victim, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Loss (n,), margin (n,) and the gradient of the loss in x, (n, …)."""
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        loss, margin = victim.evaluate(point, y)
        if not loss.requires_grad:
            raise SpecError(FLAT)
        (gradient,) = torch.autograd.grad(loss.sum(), point)
    return loss.detach(), margin.detach(), gradient


def require_radius(spec: Any) -> None:
    """A positive radius."""
    require(0 < spec.radius < math.inf, spec, "radius", "a positive number, in the units of X")


def require_norm(spec: Any) -> None:
    """A p-norm; ∞ is written as a word, which files can hold."""
    if spec.norm == math.inf:
        object.__setattr__(spec, "norm", "inf")
    require(spec.norm == "inf" or spec.norm >= 1, spec, "norm", "a number p from 1 to inf")


def _beside(flags: Tensor, x: Tensor) -> Tensor:
    return flags.reshape(-1, *[1] * (x.ndim - 1))
