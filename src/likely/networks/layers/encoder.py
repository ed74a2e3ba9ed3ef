"""The encoder of a transformer: blocks in which steps look at one another, then each is changed by itself.

    post   x ← LN(x + A(x)),   x ← LN(x + g(x))          g(x) = W₂ φ(W₁ x + b₁) + b₂
    pre    x ← x + A(LN(x)),   x ← x + g(LN(x)),   and LN after the last block

A is attention and LN layer norm. Pre-norm leaves a way from end to end that no norm is on, so deep ones train easily.
The blocks of a decoder look, between the two, at another sequence as well: x ← x + C(LN(x), memory).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ...core.errors import SpecError
from .activation import activation as activation_of
from .attention import MultiHeadAttention
from .dropout import Dropout
from .init import initialise, lecun
from .linear_attention import LinearAttention
from .norm import LayerNorm
from .positions import LearnedPositions, RelativePositions, SinusoidalPositions, join_positions
from .steps import pooled, refuse_steps

__all__ = ["Encoder", "EncoderBlock"]

EncoderState = tuple[int, tuple[tuple[Tensor, ...], ...]]
"""How many steps there were, and what the attention of each block keeps of them."""
KeysValues = tuple[Tensor, Tensor]
"""Of one block for another sequence, (n, heads, s, width/heads) each."""
FARTHEST = 64
"""Relative distances beyond it are alike, so that each has been seen often enough to be learned."""


class EncoderBlock(nn.Module):
    """Attention among steps and a network of one hidden layer on each, both with a skip and a norm.

    `hidden` is 4·width unless given. `dropout` acts on attention weights, hidden units and both branches, in training.
    Weights at the end of all branches are drawn `start` times as large as elsewhere. Without `bias`, no affine map and
    no norm has one. With `context`, the features of another sequence, there is a third branch: cross-attention to it,
    by the score `cross`.

    >>> EncoderBlock(8, heads=2)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        hidden: int | None = None,
        *,
        norm: Literal["pre", "post"] = "pre",
        attention: Literal["softmax", "linear"] = "softmax",
        score: str = "scaled",
        dropout: float = 0.0,
        activation: str = "gelu",
        start: float = 1.0,
        bias: bool = True,
        context: int | None = None,
        cross: str = "scaled",
    ) -> None:
        super().__init__()
        self.attention: MultiHeadAttention | LinearAttention
        if attention == "linear":
            self.attention = LinearAttention(width, heads, bias=bias)
        else:
            self.attention = MultiHeadAttention(width, heads, score=score, dropout=dropout, bias=bias)
        self.attention.projections.out.weight.data.mul_(start)
        inner, outer = nn.Linear(width, hidden or 4 * width, bias), nn.Linear(hidden or 4 * width, width, bias)
        initialise(inner.weight, "he", activation)
        lecun(outer.weight, start)
        for affine in (inner, outer) if bias else ():
            nn.init.zeros_(affine.bias)
        self.change = nn.Sequential(inner, activation_of(activation), Dropout(dropout), outer)
        self.norms = nn.ModuleList([LayerNorm(width, bias=bias), LayerNorm(width, bias=bias)])
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"
        self.cross: MultiHeadAttention | None = None
        if context is not None:
            self.cross = MultiHeadAttention(width, heads, context=context, score=cross, dropout=dropout, bias=bias)
            self.cross.projections.out.weight.data.mul_(start)
            self.norms.append(LayerNorm(width, bias=bias))

    def forward(
        self,
        x: Tensor,
        present: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        causal: bool = False,
        context: KeysValues | None = None,
        seen: Tensor | None = None,
    ) -> Tensor:
        """`present` says which steps there are, (n, t); `bias`, (heads, t, t), is for softmax attention.

        `context` has the keys and values of another sequence, see `MultiHeadAttention.look`, and `seen` says which of
        its steps there are, (n, s).
        """
        extra = {} if bias is None else {"bias": bias}
        x = self._branch(0, lambda h: self.attention(h, present=present, causal=causal, **extra), x)
        return self._branch(1, self.change, self._crossed(x, context, seen))

    def step(
        self,
        x: Tensor,
        state: tuple[Tensor, ...],
        *,
        bias: Tensor | None = None,
        context: KeysValues | None = None,
        seen: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One more step (n, 1, width) of a causal encoder, and what later steps look at."""
        extra: dict[str, Any] = {} if bias is None else {"bias": bias}
        out, state = self.attention.step(self.norms[0](x) if self.pre else x, state, **extra)  # type: ignore[arg-type]
        x = x + self.dropout(out)
        x = x if self.pre else self.norms[0](x)
        return self._branch(1, self.change, self._crossed(x, context, seen)), state

    def cross_weights(
        self, x: Tensor, context: Tensor, seen: Tensor | None, *, bias: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """How much each step looks at each of another sequence (n, s, context): (n, heads, t, s)."""
        assert self.cross is not None
        extra = {} if bias is None else {"bias": bias}
        x = self._branch(0, lambda h: self.attention(h, causal=causal, **extra), x)
        return self.cross.weights(self.norms[2](x) if self.pre else x, context, present=seen)

    def _crossed(self, x: Tensor, context: KeysValues | None, seen: Tensor | None) -> Tensor:
        cross = self.cross
        if cross is None or context is None:
            return x
        return self._branch(2, lambda h: cross.look(h, context, seen), x)

    def _branch(self, number: int, change: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """x and what a branch adds to it, with the norm before or after."""
        norm = self.norms[number]
        return x + self.dropout(change(norm(x))) if self.pre else norm(x + self.dropout(change(x)))


class Encoder(nn.Module):
    """Steps (n, t, `in_features`) → (n, width), or (n, t, width) with output="each". Positions, blocks, a reading.

    `positions` are "learned" (for `longest` steps), "sinusoidal", "relative" or None, and those of the first two are
    added to x or concatenated with it, where they are half of the width. `output` is "class", what becomes of a
    learned token after the last step, "mean", "last" or "each". With `context`, the features of another sequence, all
    blocks look at it too, by the score `cross`: a causal one is the decoder of a transformer.

    >>> Encoder(8, heads=2, layers=1, longest=6)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 8])
    >>> decoder = Encoder(8, heads=2, layers=1, longest=6, causal=True, output="each", context=4)
    >>> decoder(torch.zeros(3, 5, 8), context=decoder.looked_at(torch.zeros(3, 7, 4))).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        longest: int,
        hidden: int | None = None,
        norm: Literal["pre", "post"] = "pre",
        positions: Literal["learned", "sinusoidal", "relative"] | None = "learned",
        join: Literal["add", "concatenate"] = "add",
        attention: Literal["softmax", "linear"] = "softmax",
        score: str = "scaled",
        causal: bool = False,
        output: Literal["class", "mean", "last", "each"] = "class",
        dropout: float = 0.0,
        activation: str = "gelu",
        bias: bool = True,
        context: int | None = None,
        cross: str = "scaled",
    ) -> None:
        super().__init__()
        own = width // 2 if join == "concatenate" else width
        self.width, self.in_features = width, width - own if join == "concatenate" else width
        self.join, self.causal, self.output = join, causal, output
        self.token = nn.Parameter(torch.randn(1, width)) if output == "class" else None
        self.positions: LearnedPositions | SinusoidalPositions | None = None
        if positions == "learned":
            self.positions = LearnedPositions(longest, own)
        elif positions == "sinusoidal":
            self.positions = SinusoidalPositions(own)
        reach = min(longest - 1, FARTHEST)
        self.relative = RelativePositions(heads, reach, output == "class") if positions == "relative" else None
        self.dropout = Dropout(dropout)
        branches = 2 if context is None else 3
        start = (branches * layers) ** -0.5 if norm == "pre" else 1.0  # their variances add up to that of one
        self.blocks = nn.ModuleList(
            EncoderBlock(
                width,
                heads,
                hidden,
                norm=norm,
                attention=attention,
                score=score,
                dropout=dropout,
                activation=activation,
                start=start,
                bias=bias,
                context=context,
                cross=cross,
            )
            for _ in range(layers)
        )
        self.norm = LayerNorm(width, bias=bias) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        present: Tensor | None = None,
        *,
        context: tuple[KeysValues, ...] | None = None,
        seen: Tensor | None = None,
    ) -> Tensor:
        """`present` says which steps there are, (n, t); what is at the others changes nothing.

        `context` is what `looked_at` made of another sequence, and `seen` says which of its steps there are, (n, s).
        """
        x, present, bias = self._entered(x, present)
        for block, looked in zip(self.blocks, context or [None] * len(self.blocks), strict=True):
            x = block(x, present, bias=bias, causal=self.causal, context=looked, seen=seen)
        if self.output == "class":
            return self.norm(x[:, self.token_at])
        x = self.norm(x)
        return x if self.output == "each" else pooled(x, present, self.output)

    @property
    def token_at(self) -> int:
        """Where the class token is: first, at one place beside steps however many; if steps see only what was before
        them last, where it sees them all."""
        return -1 if self.causal else 0

    def _entered(self, x: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """What the first block is given: steps with positions and the class token, which there are, and biases."""
        if self.positions is not None:
            x = join_positions(x, self.positions(x), self.join)
        steps = x.shape[1] + (self.token is not None)
        bias = None if self.relative is None else self.relative(steps, steps)
        if self.token is not None:
            token, first = self.token.expand(len(x), 1, -1), self.token_at == 0
            x = torch.cat([token, x] if first else [x, token], 1)
            present = None if present is None else nn.functional.pad(present, (1, 0) if first else (0, 1), value=True)
            bias = bias.roll((1, 1), (1, 2)) if first and bias is not None else bias
        return self.dropout(x), present, bias

    def cross_weights(self, x: Tensor, context: Tensor, seen: Tensor | None = None) -> Tensor:
        """How much each step looks at each of another sequence (n, s, context), by each head of the last block.

        >>> decoder = Encoder(8, heads=2, layers=2, longest=6, causal=True, output="each", context=4)
        >>> decoder.cross_weights(torch.zeros(3, 5, 8), torch.zeros(3, 7, 4)).shape
        torch.Size([3, 2, 5, 7])
        """
        x, present, bias = self._entered(x, None)
        looked = self.looked_at(context)
        for block, own in zip(list(self.blocks)[:-1], looked[:-1], strict=True):
            x = block(x, present, bias=bias, causal=self.causal, context=own, seen=seen)
        return self.blocks[-1].cross_weights(x, context, seen, bias=bias, causal=self.causal)  # type: ignore[operator, no-any-return]

    def looked_at(self, context: Tensor) -> tuple[KeysValues, ...]:
        """The keys and values of another sequence (n, s, context), for each block: they are the same at all steps."""
        return tuple(block.cross.projections.keys_values(context) for block in self.blocks)  # type: ignore[union-attr, operator]

    def start(self, rows: int) -> EncoderState:
        """The initial state for `rows` sequences, before their first step, to be given to `step`."""
        if not self.causal:
            raise SpecError("Steps that look at what follows them have no state to go on from: step needs causal=True.")
        refuse_steps(self.output)
        return 0, tuple(block.attention.start(rows) for block in self.blocks)  # type: ignore[union-attr, operator]

    def step(
        self,
        x: Tensor,
        state: EncoderState,
        *,
        context: tuple[KeysValues, ...] | None = None,
        seen: Tensor | None = None,
    ) -> tuple[Tensor, EncoderState]:
        """What becomes (n, width) of one more step (n, in_features), and the state after it."""
        index, before = state
        x = x.unsqueeze(1)
        if self.positions is not None:
            here = self.positions(x.new_empty(1, index + 1, 0))[-1:]
            x = join_positions(x, here, self.join)
        bias = None if self.relative is None else self.relative.of_last(index + 1)
        x, after = self.dropout(x), []
        for block, kept, looked in zip(self.blocks, before, context or [None] * len(before), strict=True):
            x, now = block.step(x, kept, bias=bias, context=looked, seen=seen)  # type: ignore[operator]
            after.append(now)
        return self.norm(x[:, 0]), (index + 1, tuple(after))
