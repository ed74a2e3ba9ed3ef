"""Attention: an average of values, weighted by how well their keys answer a query.

    a_ij = softmax_j( score(q_i, k_j) + m_ij ),   h_i = Σ_j a_ij v_j

    scaled    qᵀk/√d          general   qᵀWk
    dot       qᵀk             additive  vᵀ tanh(Wq + Uk)

m is −∞ where a query must not look, and may hold a bias such as that of relative positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from .dropout import dropped
from .init import lecun

__all__ = [
    "SCORES",
    "AdditiveScore",
    "GeneralScore",
    "MultiHeadAttention",
    "Projections",
    "Score",
    "attend",
    "attention_weights",
    "refuse_heads",
    "score_of",
]

SCORES = ("scaled", "dot", "general", "additive")

Score = Literal["scaled", "dot"] | Callable[[Tensor, Tensor], Tensor]
"""How well keys answer queries: a name, or a function (…, t, d), (…, s, d) → (…, t, s) such as `GeneralScore`."""


class GeneralScore(nn.Module):
    """qᵀWk, for queries and keys of any two widths; with `heads`, a W for each.

    >>> GeneralScore(3, 2)(torch.ones(4, 3), torch.ones(5, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(self, query_features: int, key_features: int, heads: int | None = None) -> None:
        super().__init__()
        several = () if heads is None else (heads,)
        self.weight = nn.Parameter(torch.empty(*several, query_features, key_features))
        nn.init.normal_(self.weight, std=(query_features * key_features) ** -0.5)

    def project(self, query: Tensor) -> Tensor:
        """Wᵀq, whose dot product with k is the score."""
        return query @ self.weight

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.project(query) @ key.mT


class AdditiveScore(nn.Module):
    """vᵀ tanh(Wq + Uk), with `hidden` units; with `heads`, a W, U and v for each.

    All t·s pairs of a query and a key have hidden units of their own: it takes that much memory.

    >>> AdditiveScore(3, 2, hidden=8)(torch.ones(4, 3), torch.ones(5, 2)).shape
    torch.Size([4, 5])
    """

    def __init__(self, query_features: int, key_features: int, hidden: int, heads: int | None = None) -> None:
        super().__init__()
        several = () if heads is None else (heads,)
        self.query = nn.Parameter(torch.randn(*several, query_features, hidden) * query_features**-0.5)
        self.key = nn.Parameter(torch.randn(*several, key_features, hidden) * key_features**-0.5)
        self.out = nn.Parameter(torch.randn(*several, hidden, 1) * hidden**-0.5)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        both = (query @ self.query).unsqueeze(-2) + (key @ self.key).unsqueeze(-3)  # (…, t, s, hidden)
        return (both.tanh() @ self.out.unsqueeze(-3)).squeeze(-1)


def score_of(name: str, features: int, heads: int | None = None) -> Score:
    """The named score between queries and keys of this width.

    >>> score_of("dot", 4), type(score_of("general", 4)).__name__
    ('dot', 'GeneralScore')
    """
    if name == "scaled":
        return "scaled"
    if name == "dot":
        return "dot"
    if name == "general":
        return GeneralScore(features, features, heads)
    if name == "additive":
        return AdditiveScore(features, features, features, heads)
    raise SpecError(f"Unknown score {name!r}; known: {', '.join(SCORES)}.")


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    score: Score = "scaled",
    *,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """h of each query: queries (…, t, d), keys (…, s, d) and values (…, s, e) give (…, t, e).

    `mask` is True where a query may look at a key, (…, t, s) or what broadcasts to it; a query that may look at none
    gets 0. `bias` is added to the scores. `causal` lets query i look at keys 0 … i. `dropout` is the probability that
    a weight is dropped.

    Scores that are dot products run as torch's fused kernel, which has one derivative. Within `torch.func`, whose
    transforms it does not know, and with dropout, whose masks it draws by itself, they are written out. For second
    derivatives outside of it, choose `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.

    >>> query, key, value = torch.zeros(1, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])
    >>> attend(query, key, value).item()
    3.0
    """
    if isinstance(score, GeneralScore):
        query, score = score.project(query), "dot"
    if callable(score) or dropout or torch._C._are_functorch_transforms_active():
        weights = attention_weights(query, key, mask, score, bias=bias, causal=causal)
        return (dropped(weights, dropout) if dropout else weights) @ value
    scale = _scale(score, query.shape[-1])
    if causal and mask is None and bias is None:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    where = _allowed(mask, query.shape[-2], key.shape[-2], causal, query.device)
    if bias is not None:
        where = bias if where is None else torch.where(where, bias, -torch.inf)
        where = where.to(query.dtype)
    return functional.scaled_dot_product_attention(query, key, value, where, scale=scale)


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    score: Score = "scaled",
    *,
    bias: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """a, the weight of each key for each query: (…, t, s), rows with the sum 1 (or all 0, where all is masked).

    >>> attention_weights(torch.zeros(2, 3), torch.ones(2, 3), causal=True).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    scores = score(query, key) if callable(score) else (query * _scale(score, query.shape[-1])) @ key.mT
    scores = scores if bias is None else scores + bias
    allowed = _allowed(mask, query.shape[-2], key.shape[-2], causal, query.device)
    if allowed is None:
        return scores.softmax(-1)
    # the lowest finite number and not −∞, so that a row in which all is masked has no NaN, nor its derivative
    weights = torch.where(allowed, scores, torch.finfo(scores.dtype).min).softmax(-1)
    return torch.where(allowed, weights, 0.0)


class Projections(nn.Module):
    """Queries, keys and values of each head from what comes in, and from all heads back to the width.

        q = W_q x,   [k, v] = W_kv c,   out = W_o [h_1, …, h_H]

    >>> query, key, value = Projections(8, heads=2).split(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8))
    >>> query.shape, key.shape
    (torch.Size([3, 2, 5, 4]), torch.Size([3, 2, 7, 4]))
    """

    def __init__(self, width: int, heads: int, context: int | None = None, *, bias: bool = True) -> None:
        super().__init__()
        refuse_heads(width, heads)
        self.heads = heads
        self.query = nn.Linear(width, width, bias)
        self.key_value = nn.Linear(width if context is None else context, 2 * width, bias)
        self.out = nn.Linear(width, width, bias)
        for linear in (self.query, self.key_value, self.out):
            lecun(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def split(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q of x (n, t, width), k and v of the context (n, s, …), each (n, heads, ·, width/heads)."""
        if context is x and type(self.query) is type(self.key_value) is nn.Linear:
            query, key, value = (self._by_head(part) for part in self._together(x))
            return query, key, value
        return self.queries(x), *self.keys_values(context)

    def queries(self, x: Tensor) -> Tensor:
        """q alone, (n, heads, t, width/heads)."""
        return self._by_head(self.query(x))

    def keys_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """k and v alone, (n, heads, s, width/heads) each."""
        key, value = self.key_value(context).chunk(2, -1)
        return self._by_head(key), self._by_head(value)

    def _by_head(self, part: Tensor) -> Tensor:
        return part.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _together(self, x: Tensor) -> tuple[Tensor, ...]:
        """q, k and v of one sequence by one product, which is faster than two, here and in its derivatives."""
        both = (self.query, self.key_value)
        weight = torch.cat([linear.weight for linear in both])
        bias = None if self.query.bias is None else torch.cat([linear.bias for linear in both])
        return functional.linear(x, weight, bias).chunk(3, -1)

    def merge(self, heads: Tensor) -> Tensor:
        """(n, heads, t, width/heads) → (n, t, width)."""
        return self.out(heads.transpose(1, 2).flatten(2))


class MultiHeadAttention(nn.Module):
    """Attention by several heads, each with its own queries, keys and values: (n, t, width) → (n, t, width).

        out = W_o [h_1, …, h_H],   h_i = attend(W_q,i x, W_k,i c, W_v,i c)

    c is x itself (self-attention), or another sequence (cross-attention) with `context` features. `score` is "scaled",
    "dot", "general" or "additive". `dropout` is the probability that a weight is dropped in training.

    >>> attention = MultiHeadAttention(8, heads=2)
    >>> x, context = torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)
    >>> attention(x, causal=True).shape, attention.weights(x, context).shape
    (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 7]))
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        *,
        context: int | None = None,
        score: str = "scaled",
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.projections = Projections(width, heads, context, bias=bias)
        self.score = score_of(score, width // heads, heads)
        self.dropout = dropout

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        present: Tensor | None = None,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """`mask` says which pairs may look, (t, s) or (n, t, s), and `present` which of the context there are, (n, s).

        `bias` is added to the scores: (heads, t, s), as `RelativePositions` gives it.
        """
        query, key, value = self.projections.split(x, x if context is None else context)
        dropout = self.dropout if self.training else 0.0
        seen = _seen(mask, present)
        heads = attend(query, key, value, seen, self.score, bias=bias, causal=causal, dropout=dropout)
        return self.projections.merge(heads)

    def look(self, x: Tensor, context: tuple[Tensor, Tensor], present: Tensor | None = None) -> Tensor:
        """Cross-attention to keys and values (n, heads, s, width/heads) that were made once, by `keys_values`.

        x may have several rows for each row of the context, one after the other: (n·k, t, width).

        >>> attention, context = MultiHeadAttention(8, heads=2), torch.randn(3, 7, 8)
        >>> attention.look(torch.zeros(6, 1, 8), attention.projections.keys_values(context)).shape
        torch.Size([6, 1, 8])
        """
        together = x.reshape(len(context[0]), -1, x.shape[-1])
        query, dropout = self.projections.queries(together), self.dropout if self.training else 0.0
        heads = attend(query, *context, _seen(None, present), self.score, dropout=dropout)
        return self.projections.merge(heads).view(x.shape)

    def start(self, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values before the first step: none, (n, heads, 0, width/heads) each."""
        width, heads = self.projections.query.in_features, self.projections.heads
        empty = self.projections.query.weight.new_zeros(rows, heads, 0, width // heads)
        return empty, empty

    def step(
        self, x: Tensor, state: tuple[Tensor, Tensor], *, bias: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One more step (n, 1, width), which looks at itself and all before it; their keys and values are kept."""
        query, *new = self.projections.split(x, x)
        key, value = (torch.cat([before, now], -2) for before, now in zip(state, new, strict=True))
        dropout = self.dropout if self.training else 0.0
        heads = attend(query, key, value, None, self.score, bias=bias, dropout=dropout)
        return self.projections.merge(heads), (key, value)

    def weights(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        present: Tensor | None = None,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """How much each step looks at each of the context, (n, heads, t, s): what `forward` averages with."""
        query, key, _ = self.projections.split(x, x if context is None else context)
        return attention_weights(query, key, _seen(mask, present), self.score, bias=bias, causal=causal)


def refuse_heads(width: int, heads: int) -> None:
    """Heads share the width in equal parts; say which numbers of heads would do.

    >>> refuse_heads(8, 3)
    Traceback (most recent call last):
    likely.core.errors.SpecError: heads=3 does not divide width=8; 1, 2, 4 or 8 would do.
    """
    if heads < 1 or width % heads:
        raise SpecError(f"heads={heads} does not divide width={width}; {divisors(width)} would do.")


def divisors(*numbers: int) -> str:
    """The numbers that divide all of these, in words.

    >>> divisors(28, 12)
    '1, 2 or 4'
    """
    common = [str(d) for d in range(1, min(numbers) + 1) if not any(number % d for number in numbers)]
    return " or ".join([", ".join(common[:-1]), common[-1]] if len(common) > 1 else common)


def _scale(score: str, features: int) -> float:
    """What dot products are multiplied by."""
    if score not in ("scaled", "dot"):
        raise SpecError(f'score={score!r} is neither "scaled" nor "dot" nor a function such as GeneralScore(…).')
    return features**-0.5 if score == "scaled" else 1.0


def _allowed(mask: Tensor | None, queries: int, keys: int, causal: bool, device: torch.device) -> Tensor | None:
    if not causal:
        return mask
    past = torch.ones(queries, keys, dtype=torch.bool, device=device).tril()
    return past if mask is None else mask & past


def _seen(mask: Tensor | None, present: Tensor | None) -> Tensor | None:
    """One mask (n, 1, t, s) for all heads, or what broadcasts to it."""
    pairs = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
    if present is None:
        return pairs
    keys = present[:, None, None, :]
    return keys if pairs is None else pairs & keys
