"""Dropout whose masks come from the generator that the fit or the call owns (`likely.core.random`)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core.random import current_generator

__all__ = ["Dropout", "dropped"]


class Dropout(nn.Dropout):
    """x ⊙ m / (1 − p) with mᵢ ~ Bernoulli(1 − p) in training; x itself in evaluation.

    Outside a fit, the masks are drawn from torch's global generator, as those of `nn.Dropout` are.

    >>> torch.equal(Dropout(0.5).eval()(torch.ones(3)), torch.ones(3))
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropped(input, self.p) if self.training and self.p else input


def dropped(x: Tensor, p: float) -> Tensor:
    """x with every number set to 0 with probability p, and what is kept divided by 1 − p.

    >>> sorted(set(dropped(torch.ones(100), 0.5).tolist()))
    [0.0, 2.0]
    """
    if not x.numel():
        return x
    mask = torch.bernoulli(x.detach(), 1 - p, generator=current_generator(x.device))
    return x * (mask if p == 1 else mask.div_(1 - p))
