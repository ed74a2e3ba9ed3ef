"""A mixture of sequence models, one for each member of a posterior, told step by step.

    p(zₜ₊₁ | z_≤t) = Σₛ wₛ(t) pₛ(zₜ₊₁ | z_≤t),      wₛ(t) ∝ wₛ(t − 1) pₛ(zₜ | z_<t)

So the members are averaged as whole sequences: Π_t p(zₜ₊₁ | z_≤t) = Σₛ wₛ pₛ(z).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Mixing"]


class Mixing(NamedTuple):
    """What is known of the members so far, each row by itself."""

    weight: Tensor
    """log p(member | tokens so far), (n, members)."""
    ahead: Tensor
    """log p of the next token under each member, (n, members, outputs): empty before the first, or of one member."""

    @staticmethod
    def begun(weights: Tensor, rows: int) -> Mixing:
        """Before the first token of so many rows, by the weights of the members."""
        weight = weights.double().log().expand(rows, -1)
        return Mixing(weight, weight.new_zeros(rows, weight.shape[1], 0))

    def after(self, tokens: Tensor, log_probs: list[Tensor]) -> tuple[Tensor, Mixing]:
        """log p of all that may follow once these tokens (n,) are read, from what each member tells, (n, outputs)."""
        if len(log_probs) == 1:
            return log_probs[0], self
        ahead, weight = torch.stack(log_probs, 1).double(), self.weight
        if self.ahead.shape[2]:
            index = tokens.view(-1, 1, 1).expand(-1, len(log_probs), 1)
            weight = (weight + self.ahead.gather(2, index).squeeze(2)).log_softmax(1)
        return torch.logsumexp(ahead + weight.unsqueeze(2), 1), Mixing(weight, ahead)
