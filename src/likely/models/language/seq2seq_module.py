"""The module of an encoder–decoder: log p of each target given its source.

log p(y | x) = Σₜ log p(yₜ | y_<t, x),      p( · | y_<t, x) = softmax(W decoder(y_<t, encoder(x)) + b)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...networks.layers.steps import Embedding
from ...networks.transformer import Transformer, affine
from .bodies import Writer, reader_of, width_of, writer_of
from .pairs import ABSENT

__all__ = ["Read", "Seq2SeqModule"]


class Read(NamedTuple):
    """What a decoder keeps of sources: what it looks at, and which of their tokens there are, (n, s)."""

    looked_at: Any
    seen: Tensor


class Seq2SeqModule(nn.Module):
    """Targets (n, t + 1), each after a boundary, and sources (n, s), −1 after the end of each → log p of each row.

    With `smoothing` ε, training takes a token for one drawn at random with probability ε, and what it adds up is the
    mean over that: (1 − ε) log p(y) + ε/V Σ_v log p(v). `shared` vectors of tokens are those of sources and targets.

    >>> from likely.networks import GRU
    >>> module = Seq2SeqModule(GRU(8), GRU(8), "dot", symbols=(5, 4), longest=(9, 9))
    >>> module(torch.tensor([[3, 0, 1, 3], [3, 2, 3, -1]]), torch.tensor([[1, 4], [4, -1]])).shape
    torch.Size([2])
    """

    def __init__(
        self,
        encoder: Any,
        decoder: Any,
        attention: str,
        *,
        symbols: tuple[int, int],
        longest: tuple[int, int],
        shared: bool = False,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        widths = width_of(encoder), width_of(decoder)
        self.smoothing, self.outputs = smoothing, symbols[1]
        self.target = Embedding(symbols[1], widths[1])
        self.source = None if shared and widths[0] == widths[1] else Embedding(symbols[0], widths[0])
        self.sizes = tuple(
            width**0.5 if isinstance(spec, Transformer) else 1.0  # numbers of order 1, as positions are
            for spec, width in zip((encoder, decoder), widths, strict=True)
        )
        self.reader, width = reader_of(encoder, longest[0])
        self.writer: Writer = writer_of(decoder, longest[1], width, attention)
        bias = getattr(decoder, "bias", True)
        tied = getattr(decoder, "tied", False)
        self.head = None if tied else affine(self.writer.width, symbols[1], bias)

    def forward(self, x: Tensor, sources: Tensor) -> Tensor:
        return self._log_prob(x, sources, self.smoothing)

    def log_prob(self, x: Tensor, sources: Tensor) -> Tensor:
        """log p of each row, whatever training smoothes: (n,)."""
        return self._log_prob(x, sources, 0.0)

    def _log_prob(self, x: Tensor, sources: Tensor, smoothing: float) -> Tensor:
        h, following = self.writer(self._embedded(x[..., :-1]), *self._memory(sources)), x[..., 1:]
        loss = functional.cross_entropy(
            self._eta(h).flatten(0, -2), following.flatten(), ignore_index=ABSENT, reduction="none"
        ).view(following.shape)
        if smoothing:
            loss = loss + smoothing * torch.where(following == ABSENT, 0.0, self._excess(h, following.clamp_min(0)))
        return -loss.sum(-1)

    def _excess(self, h: Tensor, tokens: Tensor) -> Tensor:
        """η of tokens less the mean of η over all, by rows of weights and their mean: nothing is as wide as η."""
        weight, bias = (self.target.weight, None) if self.head is None else (self.head.weight, self.head.bias)
        excess = (functional.embedding(tokens, weight) * h).sum(-1) - h @ weight.mean(0)
        return excess if bias is None else excess + (bias - bias.mean())[tokens]

    def attention(self, x: Tensor, sources: Tensor) -> Tensor:
        """How much each token of targets looks at each of sources when it is predicted, (n, t, s)."""
        return self.writer.weights(self._embedded(x[..., :-1]), *self._memory(sources))

    # --- step by step -------------------------------------------------------------------------------------------
    def read(self, sources: Tensor) -> tuple[Any, Read]:
        """The state before the first token of each target, and what is kept of sources (n, s)."""
        memory, seen = self._memory(sources)
        return self.writer.start(memory, seen), Read(self.writer.looked_at(memory), seen)

    def step(self, tokens: Tensor, state: Any, read: Read) -> tuple[Tensor, Any]:
        """log p of all that may follow these tokens (n,) and those before, (n, outputs), and the state after them.

        There may be several rows for each source, one after the other.
        """
        h, state = self.writer.step(self._embedded(tokens), state, *read)
        return self._eta(h).log_softmax(-1), state

    # --- parts --------------------------------------------------------------------------------------------------
    def _embedded(self, tokens: Tensor) -> Tensor:
        return self.sizes[1] * self.target(tokens.clamp_min(0))

    def _memory(self, sources: Tensor) -> tuple[Tensor, Tensor]:
        seen, embedding = sources != ABSENT, self.target if self.source is None else self.source
        return self.reader(self.sizes[0] * embedding(sources.clamp_min(0)), seen), seen

    def _eta(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.target.weight) if self.head is None else self.head(h)
