"""LRU: linear recurrent units, a memory that only rotates and fades, so that all steps are computed together.

    h_t = λ ⊙ h_{t−1} + γ ⊙ B x_t,   y_t = Re(C h_t) + D ⊙ x_t
    λ = exp(−exp(ν) + iθ),   γ = √(1 − |λ|²)

|λ| < 1 whatever ν and θ are, so no state explodes; γ keeps states of order 1 however slowly they fade. What is not
linear lies between the layers: x + y ⊙ σ(W y + b), with x normalised before it enters the recurrence.
"""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.spec import is_integer, require
from ..data.rows import Inputs
from .base import Shape, _StepNetwork, refuse_absurd
from .layers.dropout import Dropout
from .layers.init import lecun
from .layers.scan import scan
from .layers.steps import (
    Embedding,
    at_each,
    one_step,
    pooled,
    refuse_steps,
    step_features,
    steps_of,
)
from .recurrent_base import (
    Output,
    check_sequence_shape,
    check_sequence_spec,
    ragged_example,
    readout,
)

__all__ = ["LRU", "LRUBlock", "LRULayer", "LRUStack"]

LOG_RATES = (-20.0, 4.0)
"""Within which ν counts: |λ| from 1 − 2·10⁻⁹ to 2·10⁻²⁴."""


class LRU(_StepNetwork):
    """`layers` blocks of `width` signals, each with a memory of `state` real numbers, over the steps of sequences.

    The memory is a linear system with `state` eigenvalues in conjugate pairs; the state/2 complex numbers with one of
    each pair are all that is computed. `radius` is between which |λ| start, on the ring: the nearer to 1, the longer
    they remember, about 1/(1 − |λ|) steps; their angles start between 0 and `angle`. `output`, `tokens` and `dropout`
    are those of `RNN`. Training steps take a fraction of the time of an LSTM's on long sequences.

    >>> from likely import Regressor
    >>> from likely.inference import MAP
    >>> X = [[[1.0, 0.0]], [[2.0, 1.0], [3.0, 1.0]], [[0.0, 1.0]] * 3]
    >>> Regressor(network=LRU(4, 4, layers=1), inference=MAP(epochs=2)).fit(X, [1.0, 2.0, 3.0]).predict(X).shape
    (3,)
    """

    width: int = 64
    state: int = 64
    layers: int = 2
    output: Output = "last"
    tokens: int | None = None
    dropout: float = 0.0
    radius: tuple[float, float] = (0.9, 0.999)
    angle: float = math.pi

    @classmethod
    def example(cls) -> Self:
        return cls(width=3, state=2, layers=1)

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        return ragged_example(rows, generator)

    def validate(self) -> None:
        require(is_integer(self.width), self, "width", "a positive integer")
        pairs = is_integer(self.state) and self.state % 2 == 0
        require(pairs, self, "state", "a positive even number")
        check_sequence_spec(self)
        ring = isinstance(self.radius, tuple) and len(self.radius) == 2 and 0 < self.radius[0] < self.radius[1] < 1
        require(ring, self, "radius", "two numbers between 0 and 1, the smaller first, such as (0.9, 0.999)")
        require(0 < self.angle <= math.pi, self, "angle", "above 0 and at most π")

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        check_sequence_shape(self, in_shape, out_features)
        inputs = self.tokens or step_features(in_shape)
        refuse_absurd(self, self.width * (inputs + out_features + self.layers * (2 * self.state + self.width + 8)))
        enter = nn.Linear(inputs, self.width) if self.tokens is None else Embedding(self.tokens, self.width)
        blocks = [LRUBlock(self.width, self.state, self.radius, self.angle, self.dropout) for _ in range(self.layers)]
        return LRUStack(enter, blocks, readout(self.width, out_features), self.output)


class LRUStack(nn.Module):
    """A map into `width` signals, blocks, and a readout of the normalised signals: one for each step or sequence.

    >>> LRUStack(nn.Linear(3, 8), [LRUBlock(8, 4)], nn.Linear(8, 2), "each")(torch.zeros(5, 7, 3)).shape
    torch.Size([5, 7, 2])
    """

    def __init__(self, enter: nn.Module, blocks: list[LRUBlock], readout: nn.Linear, output: Output = "last") -> None:
        super().__init__()
        self.enter, self.inner, self.outer = enter, nn.Sequential(*blocks[:-1]), blocks[-1]
        self.norm, self.readout, self.output = nn.LayerNorm(readout.in_features), readout, output

    def start(self, rows: int) -> tuple[Tensor, ...]:
        """The initial state for `rows` sequences, before their first step, to be given to `step`."""
        refuse_steps(self.output)
        return tuple(block.memory.start(rows) for block in (*self.inner, self.outer))  # type: ignore[union-attr, operator]

    def step(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """η (n, out) of the sequences so far, whose next step is x, and the state after it."""
        h = self.enter(one_step(x, tokens=isinstance(self.enter, Embedding)))
        after = []
        for block, before in zip((*self.inner, self.outer), state, strict=True):
            h, now = block.step(h, before)  # type: ignore[operator]
            after.append(now)
        return self.readout(self.norm(h)), tuple(after)

    def forward(self, x: Inputs) -> Tensor:
        steps, present = steps_of(x, tokens=isinstance(self.enter, Embedding))
        h = self.inner(self.enter(steps))
        if self.output == "last":
            return self.readout(self.norm(self.outer.last(h, present)))
        h = self.outer(h)
        if self.output == "each":
            return at_each(x, self.readout(self.norm(h)))
        return self.readout(self.norm(pooled(h, present, self.output)))


class LRUBlock(nn.Module):
    """x + y ⊙ σ(W y + b), where y is what a linear recurrent unit gives for the normalised x.

    `last` gives that of the last step alone, for less than the price of all.

    >>> LRUBlock(8, 4)(torch.zeros(5, 7, 8)).shape
    torch.Size([5, 7, 8])
    """

    def __init__(
        self,
        width: int,
        state: int,
        radius: tuple[float, float] = (0.9, 0.999),
        angle: float = math.pi,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm, self.memory = nn.LayerNorm(width), LRULayer(width, state, radius, angle)
        self.gate, self.dropout = nn.Linear(width, width), Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        z = self.norm(x)
        return self._changed(x, self.memory.states(z), z)

    def last(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Only the last step of each sequence: (n, t, width) → (n, width)."""
        h, x = (pooled(steps, present, "last") for steps in (self.memory.states(self.norm(x)), x))
        return self._changed(x, h, self.norm(x))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One step (n, width), from the state of the memory before it to that after it."""
        z = self.norm(x)
        h = self.memory.advance(z, state)
        return self._changed(x, h, z), h

    def _changed(self, x: Tensor, h: Tensor, z: Tensor) -> Tensor:
        y = self.memory.read(h, z)
        return x + self.dropout(y * torch.sigmoid(self.gate(y)))


class LRULayer(nn.Module):
    """h_t = λ ⊙ h_{t−1} + γ ⊙ B x_t,  y_t = Re(C h_t) + D ⊙ x_t over steps (n, t, width), with state/2 complex h.

    Parameters are real: `input_weight` holds the real and the imaginary part of each row of B in turn, and
    `output_weight` those of C̄ in its columns. Re(C h) is then one product of real matrices.

    >>> layer = LRULayer(8, 4, radius=(0.5, 0.9))
    >>> bool((layer.decay().abs() < 0.9).all())
    True
    """

    def __init__(
        self, width: int, state: int, radius: tuple[float, float] = (0.9, 0.999), angle: float = math.pi
    ) -> None:
        super().__init__()
        self.radius, self.angle = radius, angle
        self.log_rate = nn.Parameter(torch.empty(state // 2))
        self.phase = nn.Parameter(torch.empty(state // 2))
        self.input_weight = nn.Parameter(torch.empty(state, width))
        self.output_weight = nn.Parameter(torch.empty(width, state))
        self.skip = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Eigenvalues uniform over the ring; B and C such that white signals of variance 1 stay so."""
        least, most = self.radius
        squared = torch.empty_like(self.log_rate).uniform_(least**2, most**2)
        self.log_rate.copy_(torch.log(-0.5 * torch.log(squared)))
        self.phase.uniform_(0, self.angle)
        lecun(self.input_weight, 0.5**0.5)
        lecun(self.output_weight, 2**0.5)
        nn.init.ones_(self.skip)

    def decay(self) -> Tensor:
        """λ, complex, (state/2,)."""
        return torch.polar(torch.exp(-self._rate()), self.phase)

    def _rate(self) -> Tensor:
        """exp(ν) = −log |λ|. Beyond these bounds states last for ever or for no step, and gradients would be 0·∞."""
        return self.log_rate.clamp(*LOG_RATES).exp()

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self.states(x), x)

    def states(self, x: Tensor) -> Tensor:
        """h of each step: the real and the imaginary part of each number in turn, (n, t, state)."""
        inputs = functional.linear(x, self._scaled())
        h = scan(self.decay(), torch.view_as_complex(inputs.unflatten(-1, (-1, 2))))
        return torch.view_as_real(h).flatten(-2)

    def start(self, rows: int) -> Tensor:
        """h before the first step: zeros (n, state)."""
        return self.input_weight.new_zeros(rows, len(self.input_weight))

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        """h after one step x (n, width), from the h before it, (n, state)."""
        before, inputs = (
            torch.view_as_complex(part.unflatten(-1, (-1, 2))) for part in (h, functional.linear(x, self._scaled()))
        )
        return torch.view_as_real(self.decay() * before + inputs).flatten(-2)

    def _scaled(self) -> Tensor:
        """γ ⊙ B, (state, width)."""
        scale = torch.sqrt(-torch.expm1(-2 * self._rate()))
        return self.input_weight * scale.repeat_interleave(2).unsqueeze(-1)

    def read(self, h: Tensor, x: Tensor) -> Tensor:
        """Re(C h) + D ⊙ x of any steps, (…, state) and (…, width)."""
        return torch.addcmul(functional.linear(h, self.output_weight), self.skip, x)
