"""The encoder of a transformer: blocks in which steps look at one another, then each is changed by itself.

    post   x ← LN(x + A(x)),   x ← LN(x + g(x))          g(x) = W₂ φ(W₁ x + b₁) + b₂
    pre    x ← x + A(LN(x)),   x ← x + g(LN(x)),   and LN after the last block

A is attention and LN layer norm. Pre-norm leaves a way from end to end that no norm is on, so deep ones train easily.
"""

from __future__ import annotations

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
FARTHEST = 64
"""Relative distances beyond it are alike, so that each has been seen often enough to be learned."""


class EncoderBlock(nn.Module):
    """Attention among steps and a network of one hidden layer on each, both with a skip and a norm.

    `hidden` is 4·width unless given. `dropout` acts on attention weights, hidden units and both branches, in training.
    Weights at the end of both branches are drawn `start` times as large as elsewhere. Without `bias`, no affine map and
    no norm has one.

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

    def forward(
        self, x: Tensor, present: Tensor | None = None, *, bias: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """`present` says which steps there are, (n, t); `bias`, (heads, t, t), is for softmax attention."""
        first, second = self.norms
        extra = {} if bias is None else {"bias": bias}
        if self.pre:
            x = x + self.dropout(self.attention(first(x), present=present, causal=causal, **extra))
            return x + self.dropout(self.change(second(x)))
        x = first(x + self.dropout(self.attention(x, present=present, causal=causal, **extra)))
        return second(x + self.dropout(self.change(x)))

    def step(
        self, x: Tensor, state: tuple[Tensor, ...], *, bias: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One more step (n, 1, width) of a causal encoder, and what later steps look at."""
        first, second = self.norms
        extra: dict[str, Any] = {} if bias is None else {"bias": bias}
        out, state = self.attention.step(first(x) if self.pre else x, state, **extra)  # type: ignore[arg-type]
        if self.pre:
            x = x + self.dropout(out)
            return x + self.dropout(self.change(second(x))), state
        x = first(x + self.dropout(out))
        return second(x + self.dropout(self.change(x))), state


class Encoder(nn.Module):
    """Steps (n, t, `in_features`) → (n, width), or (n, t, width) with output="each". Positions, blocks, a reading.

    `positions` are "learned" (for `longest` steps), "sinusoidal", "relative" or None, and those of the first two are
    added to x or concatenated with it, where they are half of the width. `output` is "class", what becomes of a
    learned token after the last step, "mean", "last" or "each".

    >>> Encoder(8, heads=2, layers=1, longest=6)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 8])
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
        start = (2 * layers) ** -0.5 if norm == "pre" else 1.0  # the variances of 2L branches add up to that of one
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
            )
            for _ in range(layers)
        )
        self.norm = LayerNorm(width, bias=bias) if norm == "pre" else nn.Identity()

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """`present` says which steps there are, (n, t); what is at the others changes nothing."""
        if self.positions is not None:
            x = join_positions(x, self.positions(x), self.join)
        if self.token is not None:  # last, where it sees all steps even if these do not see what follows them
            x = torch.cat([x, self.token.expand(len(x), 1, -1)], 1)
            present = None if present is None else nn.functional.pad(present, (0, 1), value=True)
        bias = None if self.relative is None else self.relative(x.shape[1], x.shape[1])
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x, present, bias=bias, causal=self.causal)
        if self.output == "class":
            return self.norm(x[:, -1])
        x = self.norm(x)
        return x if self.output == "each" else pooled(x, present, self.output)

    def start(self, rows: int) -> EncoderState:
        """The state of so many sequences before their first step, to be given to `step`."""
        if not self.causal:
            raise SpecError("Steps that look at what follows them have no state to go on from: step needs causal=True.")
        refuse_steps(self.output)
        return 0, tuple(block.attention.start(rows) for block in self.blocks)  # type: ignore[union-attr, operator]

    def step(self, x: Tensor, state: EncoderState) -> tuple[Tensor, EncoderState]:
        """What becomes (n, width) of one more step (n, in_features), and the state after it."""
        index, before = state
        x = x.unsqueeze(1)
        if self.positions is not None:
            here = self.positions(x.new_empty(1, index + 1, 0))[-1:]
            x = join_positions(x, here, self.join)
        bias = None if self.relative is None else self.relative.of_last(index + 1)
        x, after = self.dropout(x), []
        for block, kept in zip(self.blocks, before, strict=True):
            x, now = block.step(x, kept, bias=bias)  # type: ignore[operator]
            after.append(now)
        return self.norm(x[:, 0]), (index + 1, tuple(after))
