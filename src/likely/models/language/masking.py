"""Which tokens of a text are hidden from a network that is to find them, and what stands in their place.

    of m = max(1, round(fraction · t)) tokens of t, drawn without replacement:
    80 % become the mask, 10 % any token, 10 % stay as they are

A network that sees a token as it is cannot know whether it is asked for, so it must have an opinion of each.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from .windows import ABSENT

__all__ = ["Masked", "hide"]

HIDDEN, SWAPPED = 0.8, 0.1
"""Fractions of the chosen tokens that become the mask, and any token."""


class Masked(NamedTuple):
    """Rows of tokens as a network sees them, (…, t), the places that it is asked about, (…, k), and what was there.

    Rows with fewer than k places have ABSENT as their last answers.
    """

    seen: Tensor
    places: Tensor
    wanted: Tensor


def hide(x: Tensor, fraction: float, tokens: int, generator: Generator | None) -> Masked:
    """Hide a fraction of the tokens 0 … tokens − 1 of each row; the mask is number `tokens`, and other symbols stay.

    >>> x = torch.tensor([[0, 1, 2, 3, 1, 0, 2, -1]])
    >>> seen, places, wanted = hide(x, 0.3, 4, torch.Generator().manual_seed(0))
    >>> bool((x.gather(1, places) == wanted).all()), places.shape, int((seen != x).sum()) <= 2
    (True, torch.Size([1, 2]), True)
    """
    free = (x >= 0) & (x < tokens)
    length = free.sum(-1, keepdim=True)
    count = torch.minimum((fraction * length).round().clamp_min(1), length)
    most = max(1, int(count.max()))

    def uniform(shape: torch.Size) -> Tensor:
        return torch.rand(shape, generator=generator).to(x.device)

    places = torch.where(free, uniform(x.shape), 2.0).topk(most, -1, largest=False).indices
    there = x.gather(-1, places)
    chosen = torch.arange(most, device=x.device) < count
    kind = uniform(places.shape)
    other = torch.randint(tokens, places.shape, generator=generator).to(x.device)
    put = torch.where(kind < HIDDEN, tokens, torch.where(kind < HIDDEN + SWAPPED, other, there))
    return Masked(x.scatter(-1, places, torch.where(chosen, put, there)), places, torch.where(chosen, there, ABSENT))
