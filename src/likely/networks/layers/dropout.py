"""Dropout whose masks come from the generator that the fit or the call owns (`likely.core.random`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from ...core.random import current_generator

__all__ = ["Dropout", "dropped", "mask_like", "sharing_masks"]

MANY = 10_000
"""Numbers from which on a mask is drawn by bits; below, one call costs less."""
LEVELS = 2**16
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
    if shared and x.ndim > 1 and len(x) % shared == 0:
        return _mask(x[:: len(x) // shared], p).repeat_interleave(len(x) // shared, 0)
    return _mask(x, p)


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
