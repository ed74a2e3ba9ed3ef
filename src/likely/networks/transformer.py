"""Transformer: steps look at one another, layer by layer, and are read as one answer or one for each.

x⁰ = embed(x) + positions,   xˡ = block(xˡ⁻¹),   η = W x^L + b
"""

from __future__ import annotations

from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.errors import DataError, SpecError
from ..core.spec import is_among, is_fraction, is_integer, require
from ..data.rows import Inputs, Rows
from .base import Shape, _StepNetwork, refuse_absurd
from .layers.activation import ACTIVATIONS
from .layers.attention import SCORES, divisors
from .layers.compiled_steps import CompiledState, compiled_start, compiled_step
from .layers.encoder import Encoder, EncoderState
from .layers.init import lecun
from .layers.steps import (
    Embedding,
    at_each,
    one_step,
    step_features,
    steps_of,
)

__all__ = ["StepsTransformer", "Transformer"]

MOST_WEIGHTS = 10**9


class Transformer(_StepNetwork):
    """An encoder of sequences: `layers` blocks of attention with `heads` heads, on vectors of `width` numbers.

    It takes sequences of one length or of any, (n, t, d), rows (n, d) as d steps of one number, and, with `tokens=k`,
    token numbers 0 … k − 1. A block's own network has `hidden` units (4·width). `norm` stands before attention and
    network ("pre") or after their skips ("post"). `positions` are "learned", "sinusoidal" or "relative", or None: then
    the steps are a set. The first two are added to the embedded steps, or concatenated with them, half and half.
    `attention="linear"` takes time in proportion to the length; softmax has the `score` "scaled", "dot", "general" or
    "additive". `causal` hides from each step what follows it. η is read from a class token, from the "mean" of all
    steps, from the "last", or from "each". `longest` is how many steps learned positions know: those of the longest
    sequence in `fit` unless given. Without `bias`, no affine map and no norm has one. With `tied`, η is read by the
    vectors of the tokens: W is the embedding. See `networks.layers` for the parts, which work alone too.

    >>> net = Transformer(width=8, heads=2, layers=1).build((5, 3), 2)
    >>> net(torch.zeros(4, 5, 3)).shape
    torch.Size([4, 2])
    >>> from likely.data.rows import Ragged
    >>> tagger = Transformer(width=8, heads=2, layers=1, tokens=10, output="each").build((5,), 2)
    >>> tagger(Ragged.of([[1, 2, 3], [4, 5]])).shape
    torch.Size([5, 2])
    """

    width: int = 64
    heads: int = 4
    layers: int = 2
    hidden: int | None = None
    norm: Literal["pre", "post"] = "pre"
    positions: Literal["learned", "sinusoidal", "relative"] | None = "learned"
    join: Literal["add", "concatenate"] = "add"
    attention: Literal["softmax", "linear"] = "softmax"
    score: Literal["scaled", "dot", "general", "additive"] = "scaled"
    causal: bool = False
    output: Literal["class", "mean", "last", "each"] = "class"
    dropout: float = 0.0
    activation: str = "gelu"
    tokens: int | None = None
    longest: int | None = None
    bias: bool = True
    tied: bool = False

    @classmethod
    def example(cls) -> Self:
        return cls(width=4, heads=2, layers=1, hidden=4, output="mean")

    @classmethod
    def example_inputs(cls, rows: int, generator: torch.Generator) -> Any:
        """Sequences of two to four steps of two numbers."""
        return [torch.randn(2 + row % 3, 2, generator=generator).numpy() for row in range(rows)]

    def validate(self) -> None:
        check_encoder(self)
        for name in ("tokens", "longest"):
            value = getattr(self, name)
            require(value is None or is_integer(value), self, name, "None or a positive integer")
        require(self.score in SCORES, self, "score", f"one of {', '.join(SCORES)}")
        for name in ("bias", "tied"):
            require(isinstance(getattr(self, name), bool), self, name, "True or False")
        require(not self.tied or self.join == "add", self, "tied", 'False unless join="add"')
        joined = self.positions in ("learned", "sinusoidal")
        require(self.join == "add" or joined, self, "join", '"add" unless positions are learned or sinusoidal')
        require(self.join == "add" or self.width > 1, self, "width", "2 or more to hold steps and positions")
        if self.attention == "linear":
            needs = '"learned", "sinusoidal" or None with linear attention, whose scores can have no bias'
            require(self.positions != "relative", self, "positions", needs)
            require(self.score == "scaled", self, "score", "left as it is with linear attention, which has its own")

    def build(self, in_shape: Shape, out_features: int, condition: Shape | None = None) -> nn.Module:
        if condition is not None:
            return self.conditioned(in_shape, out_features, condition)
        self._refuse_shape(in_shape, out_features)
        longest = self.longest or in_shape[0]
        inputs = self.tokens or step_features(in_shape)
        vectors = inputs + longest + out_features
        refuse_absurd(self, encoder_weights(self, vectors), MOST_WEIGHTS)
        encoder = Encoder(
            self.width,
            self.heads,
            self.layers,
            longest=longest,
            hidden=self.hidden,
            norm=self.norm,
            positions=self.positions,
            join=self.join,
            attention=self.attention,
            score=self.score,
            causal=self.causal,
            output=self.output,
            dropout=self.dropout,
            activation=self.activation,
            bias=self.bias,
        )
        if self.tied and (self.tokens is None or out_features > self.tokens):
            raise SpecError(
                f"Transformer(tied=True) gives at most as many numbers as it has tokens; found {self.tokens} and "
                f"{out_features} outputs."
            )
        tokens = self.tokens is not None
        return StepsTransformer(encoder, inputs, out_features, tokens=tokens, bias=self.bias, tied=self.tied)

    def check(self, x: Inputs) -> None:
        super().check(x)
        if self.positions == "learned" and self.longest is not None:
            self._refuse_longer(x, self.longest)

    def _refuse_longer(self, x: Inputs, longest: int) -> None:
        if isinstance(x, Rows):
            steps, row = (int(part) for part in x.lengths.max(0))
            where = f"X[{row}]"
        else:
            steps, where = x.shape[1], "X"
        if steps > longest:
            raise DataError(
                f"{where} has {steps} steps, and longest={longest}; set longest={steps} or more, or use "
                f'positions="sinusoidal" or "relative", which have no maximum length.'
            )

    def _refuse_shape(self, in_shape: tuple[int, ...], out_features: int) -> None:
        needs = (
            "token numbers (steps,)" if self.tokens else "steps with features, (steps, features), or numbers (steps,)"
        )
        fits = len(in_shape) in (1, 2)  # (steps, k): several tokens at each step
        if not fits or min(in_shape) < 1 or out_features < 1:
            raise SpecError(
                f"Transformer takes rows of {needs}, and one output or more; found {in_shape} and {out_features}."
            )


class StepsTransformer(nn.Module):
    """Embeds steps or tokens, runs an `Encoder` and reads η from what it gives.

    >>> encoder = Encoder(8, heads=2, layers=1, longest=5)
    >>> StepsTransformer(encoder, 3, 2)(torch.zeros(4, 5, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        encoder: Encoder,
        inputs: int,
        out_features: int,
        *,
        tokens: bool = False,
        bias: bool = True,
        tied: bool = False,
    ) -> None:
        super().__init__()
        width = encoder.in_features
        self.tokens, self.out_features = tokens, out_features
        self.embed: nn.Module = Embedding(inputs, width) if tokens else affine(inputs, width, bias)
        self.size = width**0.5 if tokens else 1.0  # tokens become numbers of order 1, as positions are
        self.encoder = encoder
        self.head = None if tied else affine(encoder.width, out_features, bias)

    def hidden(self, steps: Tensor, present: Tensor | None = None) -> Tensor:
        """What the encoder makes of steps, to be read by `read`; `present` says which there are, (n, t)."""
        return self.encoder(self.size * self.embed(steps), present)

    def read(self, h: Tensor) -> Tensor:
        """η of what the encoder gives: by a map of its own, or by the vectors of the first tokens."""
        return functional.linear(h, self.embed.weight[: self.out_features]) if self.head is None else self.head(h)  # type: ignore[index]

    def start(self, rows: int) -> EncoderState | CompiledState:
        """The initial state for `rows` sequences, before their first step, to be given to `step`."""
        state = self.encoder.start(rows)
        return compiled_start(self.encoder, rows) or state

    def step(self, x: Tensor, state: EncoderState | CompiledState) -> tuple[Tensor, EncoderState | CompiledState]:
        """η (n, out) of the sequences so far, whose next step is x, and the state after it: their keys and values."""
        x = self.size * self.embed(one_step(x, tokens=self.tokens))
        if isinstance(state, CompiledState):
            h, after = compiled_step(self.encoder, x, state)
            return self.read(h), after
        h, state = self.encoder.step(x, state)
        return self.read(h), state

    def forward(self, x: Inputs) -> Tensor:
        steps, present = steps_of(x, tokens=self.tokens)
        out = self.read(self.hidden(steps, present))
        return at_each(x, out) if self.encoder.output == "each" else out


def affine(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear layer whose outputs start at the size of its inputs, with bias 0."""
    layer = nn.Linear(inputs, outputs, bias)
    lecun(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def check_encoder(spec: Any) -> None:
    """The fields that every transformer has."""
    for name in ("width", "heads", "layers"):
        require(is_integer(getattr(spec, name)), spec, name, "a positive integer")
    fits = spec.width % spec.heads == 0
    require(fits, spec, "heads", f"a number that divides width={spec.width}: {divisors(spec.width)}")
    require(spec.hidden is None or is_integer(spec.hidden), spec, "hidden", "None or a positive integer")
    require(is_fraction(spec.dropout), spec, "dropout", "a probability, 0 or more and below 1")
    require(is_among(spec.activation, ACTIVATIONS), spec, "activation", f"one of {', '.join(ACTIVATIONS)}")


def encoder_weights(spec: Any, vectors: int) -> int:
    """Numbers that the blocks learn, and this many vectors beside them."""
    width, hidden = spec.width, spec.hidden or 4 * spec.width
    return spec.layers * (4 * width**2 + 2 * width * hidden) + vectors * width
