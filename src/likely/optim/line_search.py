"""Line search: how far to go along a direction of descent d.

Armijo:  the first t = t₀, t₀ρ, t₀ρ², …  with  f(x + td) ≤ f(x) + c·t·∇f(x)ᵀd
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import SpecError
from ..core.spec import Spec, require
from .base import is_count, is_number

__all__ = ["Armijo", "LineSearch", "armijo"]


class LineSearch(Spec, axis="line_search"):
    """Finds a step along a line."""

    def search(self, along: Callable[[float], float], value: float, derivative: float) -> float:
        """A step t ≥ 0, given `along(t)` = f(x + td), `value` = f(x) and `derivative` = ∇f(x)ᵀd < 0; 0 if none does."""
        raise NotImplementedError(f"{type(self).__name__} must implement its search")


class Armijo(LineSearch):
    """Backtracking: `shrink` the step from `initial` until f falls by the fraction `decrease` of what ∇f predicts.

    >>> Armijo().search(lambda t: (1 - 4 * t) ** 2, value=1.0, derivative=-8.0)
    0.25
    """

    shrink: float = 0.5
    decrease: float = 1e-4
    initial: float = 1.0
    max_backtracks: int = 40

    def validate(self) -> None:
        require(is_number(self.shrink) and 0 < self.shrink < 1, self, "shrink", "above 0 and below 1")
        require(is_number(self.decrease) and 0 < self.decrease < 1, self, "decrease", "above 0 and below 1")
        require(is_number(self.initial) and self.initial > 0, self, "initial", "a positive number")
        require(is_count(self.max_backtracks), self, "max_backtracks", "an integer, 1 or more")

    def search(self, along: Callable[[float], float], value: float, derivative: float) -> float:
        return armijo(along, value, derivative, self.shrink, self.decrease, self.initial, self.max_backtracks)


def armijo(
    along: Callable[[float], float],
    value: float,
    derivative: float,
    shrink: float = 0.5,
    decrease: float = 1e-4,
    initial: float = 1.0,
    max_backtracks: int = 40,
) -> float:
    """The first t of initial·shrinkᵏ with along(t) ≤ value + decrease·t·derivative, or 0 after `max_backtracks`.

    A trial that is not finite is too far. The last call of `along` is at the step that is returned, unless it is 0.

    >>> armijo(lambda t: (t - 1) ** 2, value=1.0, derivative=-2.0)
    1.0
    """
    if not derivative <= 0:
        raise SpecError(f"derivative must be negative: that along a descent direction; found {derivative:g}.")
    step = initial
    for _ in range(max_backtracks + 1):
        if along(step) <= value + decrease * step * derivative:
            return step
        step *= shrink
    return 0.0
