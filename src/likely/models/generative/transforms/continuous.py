"""Continuous: rows follow a velocity field from noise at time 0 to data at time 1.

    dx/dt = f(x, t),      log p(x₁) = log p(x₀) − ∫₀¹ tr ∂f/∂x dt

Trained by likelihood (through the steps of the solver) or by flow matching, a regression that needs no solver:

    E ‖f(xₜ, t) − (x₁ − x₀)‖²,   xₜ = (1 − t) x₀ + t x₁,   x₀ ~ base,  x₁ ~ data,  t ~ U(0, 1)

whose minimum is the field that carries the one distribution to the other (Lipman et al., 2023). The trace is exact by d
derivatives, or Hutchinson's estimate vᵀ(∂f/∂x)v with random signs v.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch import Tensor

from ....core.random import evenly
from ....core.spec import is_integer, require
from ..divergence import divergence, signs_like
from ..field import Field
from .base import Transform
from .bijection import Bijection, per_row
from .conditioner import start_small
from .ode import Field as Slope
from .ode import State, adaptive, fixed

__all__ = ["Continuous", "VelocityField"]

FASTEST = 2.0
"""Turns that the fastest wave of time makes on the way: a solver takes few steps."""


class Continuous(Transform):
    """One velocity field for all times; `layers` and `order` mean nothing to it.

    `training` is "matching" or "likelihood", which takes `steps` of Runge–Kutta; answers have errors of about `tol`.
    `trace="hutchinson"` costs one derivative instead of d, and log p is then an estimate.

    >>> Continuous(trace="hutchinson", training="likelihood")
    Continuous(trace='hutchinson', training='likelihood')
    """

    trace: Literal["exact", "hutchinson"] = "exact"
    training: Literal["matching", "likelihood"] = "matching"
    steps: int = 8
    tol: float = 1e-5

    def validate(self) -> None:
        """Known words; steps and errors that a solver can take."""
        require(self.trace in ("exact", "hutchinson"), self, "trace", '"exact" or "hutchinson"')
        require(self.training in ("matching", "likelihood"), self, "training", '"matching" or "likelihood"')
        require(is_integer(self.steps) and self.steps <= 10_000, self, "steps", "an integer from 1 to 10,000")
        require(1e-13 <= self.tol <= 0.1, self, "tol", "from 1e-13 to 0.1")


class VelocityField(Bijection):
    """f(x, t), and the flow along it: data x at time 1 to noise z at time 0.

    >>> import torch
    >>> from likely.networks import MLP
    >>> field = VelocityField(Continuous(), (2,), MLP((8,)))
    >>> x = torch.randn(4, 2)
    >>> with torch.no_grad():
    ...     torch.allclose(field.inverse(field(x)[0]), x, atol=1e-3)
    True
    """

    def __init__(
        self, spec: Continuous, shape: tuple[int, ...], network: Any, condition: tuple[int, ...] | None = None
    ) -> None:
        super().__init__()
        self.spec, self.shape = spec, shape
        self.field = Field(network, shape, condition, FASTEST)
        start_small(self.field.network)

    def velocity(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        """f at times t (n,)."""
        return self.field(x, t, condition)

    def matching(self, x: Tensor, z: Tensor, condition: Tensor | None = None) -> Tensor:
        """−½ ‖f(xₜ, t) − (x − z)‖² between noise z and data x at a time of its own for each row, (n,)."""
        t = evenly(len(x), x)
        wide = t.reshape(-1, *(1 for _ in x.shape[1:]))
        way = x - z
        v = self.velocity(z + wide * way, t, condition)
        return -0.5 * per_row((v - way).square())

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        field, start = self._backwards(x, condition)
        end = adaptive(field, start, 1.0, 0.0, self.spec.tol)
        return end[0], end[1]

    def stepped(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The same by a fixed number of steps, which gradients go through."""
        field, start = self._backwards(x, condition)
        *_, end = fixed(field, start, 1.0, 0.0, self.spec.steps)
        return end[0], end[1]

    def inverse(self, z: Tensor, condition: Tensor | None = None) -> Tensor:
        return adaptive(lambda t, state: (self._at(state[0], t, condition),), (z,), 0.0, 1.0, self.spec.tol)[0]

    def steps(self, x: Tensor, condition: Tensor | None = None) -> Iterator[Tensor]:
        for (z,) in fixed(lambda t, s: (self._at(s[0], t, condition),), (x,), 1.0, 0.0, 4 * self.spec.steps):
            yield z

    def _backwards(self, x: Tensor, condition: Tensor | None) -> tuple[Slope, State]:
        noise = signs_like(x) if self.spec.trace == "hutchinson" else None
        start = (x, x.new_zeros(len(x)))
        return (lambda t, state: self._with_trace(state[0], t, condition, noise)), start

    def _at(self, x: Tensor, t: float, condition: Tensor | None) -> Tensor:
        return self.velocity(x, x.new_full((len(x),), t), condition)

    def _with_trace(self, x: Tensor, t: float, condition: Tensor | None, probe: Tensor | None) -> tuple[Tensor, Tensor]:
        """f(x, t), and the trace of ∂f/∂x of each row."""
        return divergence(lambda at: self._at(at, t, condition), x, probe)
