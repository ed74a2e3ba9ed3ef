"""Continuous: rows follow a velocity field from noise at time 0 to data at time 1.

    dx/dt = f(x, t),      log p(x₁) = log p(x₀) − ∫₀¹ tr ∂f/∂x dt

Trained by likelihood (through the steps of the solver) or by flow matching, a regression that needs no solver:

    E w(t) ‖f(xₜ, t) − (x₁ − x₀)‖²,   xₜ = (1 − t) x₀ + t x₁,   x₀ ~ base,  x₁ ~ data

whose minimum, for any w > 0, is the field that carries the one distribution to the other (Lipman et al., 2023). The
network gives what is left of the best linear field for data and noise of variance 1, in units of its own:

    f(x, t) = (2t − 1)/q · x + network(x/√q, t)/√q,      q = t² + (1 − t)²

so that a network that says 0 leaves noise as it is, and targets have variance 1 at all times (after Karras et al.,
2022). The trace is exact by d derivatives, or Hutchinson's estimate vᵀ(∂f/∂x)v with random signs v.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from ....core.random import evenly
from ....core.spec import is_integer, require
from ..divergence import divergence, signs_like
from ..field import Field, loudness
from ..origin import origin
from .base import Transform
from .bijection import Bijection, per_row
from .conditioner import start_small
from .ode import Field as Slope
from .ode import State, adaptive, fixed

__all__ = ["Continuous", "VelocityField"]

FASTEST = 2.0
"""Turns that the fastest wave of time makes on the way: a solver takes few steps."""
LATE, SPREAD = 0.8, 1.2
"""Centre and width of the logits of times in flow matching."""


class Continuous(Transform):
    """One velocity field for all times; `layers` and `order` mean nothing to it.

    `training` is how the field is found: "matching", a regression whose steps cost one pass of the network, or
    "likelihood", the log p of the rows, whose gradient goes through so many `steps` of Runge–Kutta. Answers have errors
    of about `tol`, however it was trained. `trace="hutchinson"` costs one derivative instead of d; log p is then an
    estimate.

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
        self.gain = loudness(shape)
        start_small(self.field.network)

    def velocity(self, x: Tensor, t: Tensor, condition: Tensor | None = None) -> Tensor:
        """f at times t (n,)."""
        wide = t.reshape(-1, *(1 for _ in x.shape[1:]))
        q = _variance(wide)
        unit = q.rsqrt()
        return (2 * wide - 1) / q * x + unit * self.field(self.gain * unit * x, t, condition)

    def matching(self, x: Tensor, z: Tensor, condition: Tensor | None = None, *, shared: bool = False) -> Tensor:
        """−½ q ‖f(xₜ, t) − (x − z)‖² between noise z and data x at a time of its own for each row, (n,).

        Times are logit-normal: more of them late on the way, where the shape of the data comes out. `shared` takes the
        mean of x − z over all rows of the batch that xₜ may have come from, where z is normal and rows count alike.
        """
        t = torch.sigmoid(LATE + SPREAD * torch.special.ndtri(evenly(len(x), x).clamp(1e-6, 1 - 1e-6)))
        wide = t.reshape(-1, *(1 for _ in x.shape[1:]))
        at, way = z + wide * (x - z), x - z
        if shared:
            way = (origin(at, x, wide, 1 - wide, condition) - at) / (1 - wide)
        v = self.velocity(at, t, condition)
        return -0.5 * _variance(t) * per_row((v - way).square())

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


def _variance(t: Tensor) -> Tensor:
    """Of (1 − t) z + t x, if z and x have variance 1."""
    return t.square() + (1 - t).square()
