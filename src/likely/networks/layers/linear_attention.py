"""Linear attention: with a score φ(q)ᵀφ(k) the sums over keys do not depend on the query, and are made once.

    h_i = Σ_j φ(q_i)ᵀφ(k_j) v_j / Σ_j φ(q_i)ᵀφ(k_j) = φ(q_i)ᵀ S / φ(q_i)ᵀ z,   S = Σ_j φ(k_j) v_jᵀ,  z = Σ_j φ(k_j)

Time and memory grow with the length, not with its square. φ(x) = elu(x) + 1 is positive. In the causal form the sums
run over j ≤ i: whole chunks of steps enter through running sums, and only within a chunk are pairs looked at.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .attention import Projections

__all__ = ["LinearAttention", "elu_plus_one", "linear_attend"]

CHUNKS = 32, 128
"""Steps in a chunk: as many as a key has numbers, within these."""


def elu_plus_one(x: Tensor) -> Tensor:
    """φ(x) = x + 1 for x > 0, eˣ otherwise: a positive feature for each number.

    >>> elu_plus_one(torch.tensor([-50.0, 0.0, 2.0])).round().tolist()
    [0.0, 1.0, 3.0]
    """
    return functional.elu(x) + 1


def linear_attend(
    query: Tensor, key: Tensor, value: Tensor, present: Tensor | None = None, *, causal: bool = False
) -> Tensor:
    """h of each query: queries (…, t, d), keys (…, s, d) and values (…, s, e) give (…, t, e).

    `present` says which keys there are, (…, s). `causal` lets query i look at keys 0 … i; then t = s.

    >>> query, key, value = torch.zeros(1, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])
    >>> linear_attend(query, key, value).item()
    3.0
    """
    query, key = (elu_plus_one(part.contiguous()) for part in (query, key))  # elu is slow on heads split by a view
    if present is not None:
        key = torch.where(present.unsqueeze(-1), key, 0.0)
    ones = value.new_ones(()).expand(*value.shape[:-1], 1)
    value = torch.cat([value, ones], -1)  # so that the last column of S is z
    sums = _causal_sums(query, key, value) if causal else query @ (key.mT @ value)
    total, weight = sums[..., :-1], sums[..., -1:]
    return total / weight.clamp_min(torch.finfo(weight.dtype).tiny)


def _causal_sums(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """φ(q_i)ᵀ Σ_{j ≤ i} φ(k_j) v_jᵀ for each i, chunk by chunk."""
    steps = query.shape[-2]
    size = min(max(CHUNKS[0], min(query.shape[-1], CHUNKS[1])), steps)
    missing = -steps % size
    if missing:
        query, key, value = (functional.pad(part, (0, 0, 0, missing)) for part in (query, key, value))
    query, key, value = (part.unflatten(-2, (-1, size)) for part in (query, key, value))
    within, sums = (query @ key.mT).tril() @ value, key.mT @ value
    before = sums.cumsum(-3) - sums
    total = torch.baddbmm(*(part.flatten(0, -3) for part in (within, query, before)))
    return total.view_as(within).flatten(-3, -2)[..., :steps, :]


class LinearAttention(nn.Module):
    """Multi-head attention in linear time: (n, t, width) → (n, t, width), as `MultiHeadAttention` is called.

    >>> attention = LinearAttention(8, heads=2)
    >>> attention(torch.zeros(3, 5, 8), causal=True).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, width: int, heads: int = 1, *, context: int | None = None, bias: bool = True) -> None:
        super().__init__()
        self.projections = Projections(width, heads, context, bias=bias)

    def forward(
        self, x: Tensor, context: Tensor | None = None, *, present: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """`present` says which of the context there are, (n, s)."""
        query, key, value = self.projections.split(x, x if context is None else context)
        there = None if present is None else present.unsqueeze(1)
        return self.projections.merge(linear_attend(query, key, value, there, causal=causal))

    def start(self, rows: int) -> tuple[Tensor]:
        """Σ φ(k) [v, 1]ᵀ before the first step: zeros (n, heads, d, d + 1)."""
        heads = self.projections.heads
        size = self.projections.query.in_features // heads
        return (self.projections.query.weight.new_zeros(rows, heads, size, size + 1),)

    def step(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """One more step (n, 1, width), which looks at itself and all before it: the sums are all there is to keep."""
        query, key, value = self.projections.split(x, x)
        query, key = elu_plus_one(query), elu_plus_one(key)
        sums = state[0] + key.mT @ torch.cat([value, torch.ones_like(value[..., :1])], -1)
        total, weight = (query @ sums).split([value.shape[-1], 1], -1)
        out = total / weight.clamp_min(torch.finfo(weight.dtype).tiny)
        return self.projections.merge(out), (sums,)
