"""Dropout whose masks come from the generator that the fit or the call owns (`likely.core.random`).

In training every row has a mask of its own. Inside `sharing_masks` all rows have the same one, so that the network is
one function of the row: a number of the mask is then a hash of its place, mask[i, j, …] = h(h(h(key) + i) + j) …, and
that place has it however many rows, steps or nodes there are beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from ...core.random import current_generator

__all__ = ["ChannelDropout", "Dropout", "dropped", "entry_mask", "mask_like", "sharing_masks"]

MANY = 10_000
"""Numbers from which on a mask is drawn by bits; below, one call costs less."""
LEVELS = 2**16
SPACING, FIRST, SECOND = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
"""The increment and the two odd factors of the 64-bit mixing of SplitMix."""
_masks: ContextVar[int] = ContextVar("masks", default=0)
"""How many masks a batch has in this thread; 0: one for each row."""


class Dropout(nn.Dropout):
    """x ⊙ m / (1 − p) with mᵢ ~ Bernoulli(1 − p) in training; x itself in evaluation.

    Outside a fit, the masks are drawn from torch's global generator, as those of `nn.Dropout` are.

    >>> torch.equal(Dropout(0.5).eval()(torch.ones(3)), torch.ones(3))
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return dropped(input, self.p) if self.training and self.p else input


class ChannelDropout(nn.Dropout):
    """Dropout of whole channels: of x (n, channels, …), all numbers of a channel are kept or set to 0 together.

    >>> len(ChannelDropout(0.5)(torch.ones(1, 1, 4, 4)).unique())
    1
    """

    def forward(self, input: Tensor) -> Tensor:
        if not (self.training and self.p and input.numel()):
            return input
        mask = mask_like(input.reshape(*input.shape[:2], -1)[..., 0], self.p)
        return input * mask.reshape(*mask.shape, *[1] * (input.ndim - 2))


def dropped(x: Tensor, p: float) -> Tensor:
    """x with every number set to 0 with probability p, and what is kept divided by 1 − p.

    >>> sorted(set(dropped(torch.ones(100), 0.5).tolist()))
    [0.0, 2.0]
    """
    return x * mask_like(x, p) if x.numel() else x


@contextmanager
def sharing_masks(count: int) -> Iterator[None]:
    """Inside, a batch of `count` equal parts has one mask for each part, which all rows of it share; 0: one per row.

    >>> with sharing_masks(2):
    ...     mask = mask_like(torch.zeros(6, 50), 0.5)
    >>> torch.equal(mask[0], mask[2]), torch.equal(mask[2], mask[3])
    (True, False)
    """
    token = _masks.set(count)
    try:
        yield
    finally:
        _masks.reset(token)


def mask_like(x: Tensor, p: float) -> Tensor:
    """0 with probability p, else 1 / (1 − p); only zeros where p is 1. For one mask of many rows see `sharing_masks`.

    Large masks are drawn by the 16 bits, four from one random integer: p is then rounded to a multiple of 2⁻¹⁶, and
    what is kept is divided by one minus that.

    >>> mask_like(torch.zeros(200, 300), 0.25).unique()
    tensor([0.0000, 1.3333])
    """
    shared = _masks.get()
    if shared and x.ndim and len(x) % shared == 0:
        return _shared_mask((shared, *x.shape[1:]), x, p).repeat_interleave(len(x) // shared, 0)
    return _mask(x, p)


def entry_mask(values: Tensor, columns: Tensor, width: int, p: float) -> Tensor:
    """The mask of the entries of a sparse matrix; in shared masks, each entry has that of its column.

    >>> with sharing_masks(1):
    ...     mask = entry_mask(torch.ones(4), torch.tensor([0, 1, 0, 1]), 2, 0.5)
    >>> torch.equal(mask[:2], mask[2:])
    True
    """
    shared = _masks.get()
    if not shared:
        return mask_like(values, p)
    return _shared_mask((shared, width), values, p).gather(1, columns.reshape(shared, -1)).flatten()


def _shared_mask(shape: tuple[int, ...], like: Tensor, p: float) -> Tensor:
    if p == 1:
        return like.new_zeros(shape)
    generator = current_generator(like.device)
    bits = torch.empty((), dtype=torch.int64, device=like.device).random_(-(2**63), None, generator=generator)
    for size in shape:
        bits = _mixed(bits.unsqueeze(-1) + SPACING * torch.arange(1, size + 1, device=like.device))
    return (bits >= round(p * 2**64) - 2**63).to(like.dtype).div_(1 - p)


def _mixed(bits: Tensor) -> Tensor:
    """64 bits of which each depends on all that there were."""
    bits = (bits ^ (bits >> 30 & 2**34 - 1)) * FIRST
    bits = (bits ^ (bits >> 27 & 2**37 - 1)) * SECOND
    return bits ^ (bits >> 31 & 2**33 - 1)


def _mask(x: Tensor, p: float) -> Tensor:
    generator = current_generator(x.device)
    if x.numel() < MANY or x.device.type != "cpu" or torch._C._functorch.peek_interpreter_stack() is not None:
        mask = torch.bernoulli(x.detach(), 1 - p, generator=generator)
        return mask if p == 1 else mask.div_(1 - p)
    out = round(p * LEVELS)
    if out == LEVELS:
        return torch.zeros_like(x)
    integers = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    bits = integers.view(torch.int16)[: x.numel()]
    mask = torch.ge(bits, out - LEVELS // 2, out=x.new_empty(x.numel())).mul_(LEVELS / (LEVELS - out))
    order = torch.empty_like(x, device="meta").stride()  # a product of two orders of memory takes twice as long
    return mask.as_strided(x.shape, order)
