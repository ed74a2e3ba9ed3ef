"""What RNN, GRU and LSTM share: layers over steps, one above the other, and an affine map of what they give.

η = W h_t + b   at each step, or with h of the last step, or with the mean of all
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.spec import is_fraction, is_integer, require
from ..data.rows import Inputs
from .base import Shape, _StepNetwork, refuse_absurd
from .layers.dropout import Dropout
from .layers.init import lecun
from .layers.recurrent import RecurrentLayer, State
from .layers.steps import (
    Embedding,
    at_each,
    one_step,
    pooled,
    refuse_steps,
    step_features,
    steps_of,
)

__all__ = [
    "OUTPUTS",
    "Output",
    "StackedLayers",
    "check_sequence_shape",
    "check_sequence_spec",
    "ragged_example",
    "readout",
]

OUTPUTS = ("last", "mean", "each")

Output = Literal["last", "mean", "each"]


class _RecurrentNetwork(_StepNetwork):
    """The arguments that all recurrent networks have, and how they are built; a layer is what differs."""

    hidden: int = 64
    layers: int = 1
    bidirectional: bool = False
    output: Output = "last"
    dropout: float = 0.0
    tokens: int | None = None

    @classmethod
    def example(cls) -> Self:
        return cls(hidden=2)

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        return ragged_example(rows, generator)

    def validate(self) -> None:
        require(is_integer(self.hidden), self, "hidden", "a positive integer")
        check_sequence_spec(self)
        require(isinstance(self.bidirectional, bool), self, "bidirectional", "True or False")

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        check_sequence_shape(self, in_shape, out_features)
        width = self.hidden if self.tokens is not None else step_features(in_shape)
        given = self.hidden * (2 if self.bidirectional else 1)
        most = (self.tokens or 0) * self.hidden + 4 * given * (width + given) * self.layers + given * out_features
        refuse_absurd(self, most)
        embedding = None if self.tokens is None else Embedding(self.tokens, self.hidden)
        layers = [self._layer(given if number else width) for number in range(self.layers)]
        return StackedLayers(embedding, layers, readout(given, out_features), self.output, self.dropout)

    def _layer(self, in_features: int) -> RecurrentLayer:
        raise NotImplementedError(f"{type(self).__name__} must implement its layer")


class StackedLayers(nn.Module):
    """Recurrent layers, each over the outputs of the one before, dropout after each, and a readout.

    Of a layer with two directions, the last output is what either has seen at its own end: at the last step ahead, and
    at the first step back.

    >>> from likely.networks.layers.recurrent import GRULayer
    >>> StackedLayers(None, [GRULayer(3, 4)], nn.Linear(4, 2), "each")(torch.zeros(5, 7, 3)).shape
    torch.Size([5, 7, 2])
    """

    def __init__(
        self,
        embedding: Embedding | None,
        layers: Sequence[RecurrentLayer],
        readout: nn.Module,
        output: Output = "last",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers = nn.ModuleList(layers)
        self.readout, self.output = readout, output
        self.dropout = Dropout(dropout)

    def start(self, rows: int) -> tuple[State, ...]:
        """The initial state for `rows` sequences, before their first step, to be given to `step`."""
        refuse_steps(self.output)
        return tuple(layer.start(rows) for layer in self.layers)  # type: ignore[operator]

    def step(self, x: Tensor, state: tuple[State, ...]) -> tuple[Tensor, tuple[State, ...]]:
        """η (n, out) of the sequences so far, whose next step is x, and the state after it."""
        h = one_step(x, tokens=self.embedding is not None)
        h = h if self.embedding is None else self.embedding(h)
        after = []
        for layer, before in zip(self.layers, state, strict=True):
            out, now = layer.step(h, before)  # type: ignore[operator]
            h = self.dropout(out)
            after.append(now)
        return self.readout(h), tuple(after)

    def hidden(self, steps: Tensor, present: Tensor | None = None) -> Tensor:
        """The outputs of the last layer at each step, to be read by `read`; `present` says which there are, (n, t)."""
        h = steps if self.embedding is None else self.embedding(steps)
        for layer in self.layers:
            h = self.dropout(layer(h, present))
        return h

    def read(self, h: Tensor) -> Tensor:
        """η of outputs of the last layer."""
        return self.readout(h)

    def forward(self, x: Inputs) -> Tensor:
        steps, present = steps_of(x, tokens=self.embedding is not None)
        h = self.hidden(steps, present)
        if self.output == "each":
            return at_each(x, self.readout(h))
        if self.output == "last" and any(layer.back is not None for layer in self.layers):
            ahead, back = h.chunk(2, -1)
            return self.readout(torch.cat([pooled(ahead, present, "last"), back[:, 0]], -1))
        return self.readout(pooled(h, present, self.output))


def readout(in_features: int, out_features: int) -> nn.Linear:
    """The affine map to η: LeCun's weights, so that η starts at order 1, and a bias of 0."""
    last = nn.Linear(in_features, out_features)
    lecun(last.weight)
    nn.init.zeros_(last.bias)
    return last


def check_sequence_spec(spec: Any) -> None:
    """What networks over sequences ask of the arguments they have in common."""
    require(is_integer(spec.layers), spec, "layers", "a positive integer")
    require(spec.output in OUTPUTS, spec, "output", f"one of {', '.join(OUTPUTS)}")
    require(is_fraction(spec.dropout), spec, "dropout", "a probability, 0 or more and below 1")
    known = spec.tokens is None or is_integer(spec.tokens)
    require(known, spec, "tokens", "how many different tokens there are, or None where steps are numbers")


def check_sequence_shape(spec: Any, in_shape: tuple[int, ...], out_features: int) -> None:
    """Refuse rows that are not sequences."""
    name = type(spec).__name__
    if spec.tokens is not None and len(in_shape) > 2:
        raise SpecError(f"{name}(tokens={spec.tokens}) takes rows of token numbers, (steps,); found {in_shape}.")
    if len(in_shape) not in (1, 2) or 0 in in_shape or out_features < 1:
        raise SpecError(
            f"{name} takes sequences (steps, features), or (steps,) of single numbers, with one step and one output or "
            f"more; found {in_shape} and {out_features}."
        )


def ragged_example(rows: int, generator: torch.Generator) -> list[np.ndarray]:
    """Sequences of one to four steps with two features."""
    lengths = torch.randint(1, 5, (rows,), generator=generator).tolist()
    return [torch.randn(length, 2, generator=generator).numpy() for length in lengths]
