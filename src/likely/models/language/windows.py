"""Windows of text: the rows that a network learns a language from, cut anew at random in each epoch.

A window is `context` tokens and the one after each of them. Asked for in order, as a pass over all rows does, windows
stand side by side and every token is the next one just once. Asked for by number, as training does, each is shifted by
up to half its length, ahead or back, and stays within its text. Held-out windows are never touched: one whose
neighbour is held out is not shifted that way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from ...core.random import current_generator
from ...data.rows import Ragged
from ...inference.dataset import Batch, Dataset

__all__ = ["ABSENT", "Windows"]

ABSENT = -1
"""Where a window has no token: after the end of its text."""
BLOCK = 1 << 15
"""Tokens of one block of a pass over all windows."""


@dataclass(frozen=True, kw_only=True)
class Windows(Dataset):
    """x holds all texts one after the other, each with a boundary before it; a row is a window (context + 1,) of it.

    >>> windows = Windows.of(torch.tensor([9, 1, 2, 3, 4, 5]), torch.tensor([0, 6]), 3)
    >>> windows.batch(slice(0, 2)).x
    tensor([[ 9,  1,  2,  3],
            [ 3,  4,  5, -1]])
    """

    starts: Tensor
    """Where each begins in x."""
    first: Tensor
    """Where its text begins."""
    last: Tensor
    """Where its text ends: the last token."""
    back: Tensor
    """Whether it may be shifted back, into the window before it."""
    ahead: Tensor
    context: int

    @classmethod
    def of(
        cls,
        values: Tensor,
        offsets: Tensor,
        context: int,
        weight: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """The windows of texts that start at these offsets; `weight` is one per text."""
        length = offsets.diff() - 1  # tokens that are the next one
        context = min(context, int(length.max()))
        count = -(-length // context)
        owner = torch.repeat_interleave(torch.arange(len(length)), count)
        number = torch.arange(len(owner)) - (count.cumsum(0) - count)[owner]
        starts = offsets[:-1][owner] + number * context
        first, last = (part[owner] for part in (offsets[:-1], offsets[1:] - 1))
        free = torch.ones(len(owner), dtype=torch.bool)
        own = None if weight is None else weight[owner].to(dtype)
        fixed: dict[str, Any] = {"starts": starts, "first": first, "last": last, "back": free, "ahead": free.clone()}
        return cls(values, None, own, dtype, integer=True, context=context, **fixed)

    def on(self, device: torch.device) -> Self:
        """The same on another device."""
        parts: dict[str, Any] = {
            name: getattr(self, name).to(device) for name in ("x", "starts", "first", "last", "back", "ahead")
        }
        return replace(self, **parts, weight=None if self.of_windows is None else self.of_windows.to(device))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def tokens(self) -> Tensor:
        """All texts one after the other."""
        assert isinstance(self.x, Tensor)
        return self.x

    @property
    def of_windows(self) -> Tensor | None:
        """The weights, if there are any."""
        assert not isinstance(self.weight, Ragged)
        return self.weight

    @property
    def plain(self) -> bool:
        return False

    def batch(self, index: Tensor | slice) -> Batch:
        starts, last = self.starts[index], self.last[index]
        if isinstance(index, Tensor) or index == slice(None):
            starts = self._shifted(index, starts, last)
        at = starts.unsqueeze(-1) + torch.arange(self.context + 1, device=starts.device)
        end = last.unsqueeze(-1)
        x = torch.where(at <= end, self.tokens[torch.minimum(at, end)].long(), ABSENT)
        weight = self.of_windows
        return Batch(x, None, None if weight is None else weight[index].unsqueeze(-1))

    def _shifted(self, index: Tensor | slice, starts: Tensor, last: Tensor) -> Tensor:
        """Other places at random, such that a window is full wherever its text is long enough."""
        generator = current_generator()
        if generator is None:  # nobody trains
            return starts
        half = self.context // 2
        shift = torch.randint(-half, self.context - half, starts.shape, generator=generator).to(starts.device)
        full = torch.maximum(last - self.context, self.first[index])
        wanted = torch.minimum(torch.maximum(starts + shift, self.first[index]), full)
        low, high = starts - self.context * self.back[index], starts + self.context * self.ahead[index]
        return torch.minimum(torch.maximum(wanted, low), high)

    def subset(self, rows: Tensor) -> Self:
        chosen = torch.zeros(len(self) + 2, dtype=torch.bool, device=rows.device)
        chosen[rows + 1] = True
        return replace(
            self,
            weight=None if self.of_windows is None else self.of_windows[rows],
            starts=self.starts[rows],
            first=self.first[rows],
            last=self.last[rows],
            back=self.back[rows] & chosen[rows],
            ahead=self.ahead[rows] & chosen[rows + 2],
        )

    def blocks(self, part: slice | None = None, rows: int | None = None) -> Iterator[Batch]:
        most = max(1, BLOCK // self.context)
        start, stop, _ = (part or slice(None)).indices(len(self))
        step = min(most, rows or most)
        for first in range(start, stop, step):
            yield self.batch(slice(first, min(first + step, stop)))

    def total_weight(self) -> float:
        counts = (self.last - self.starts).clamp_max(self.context).double()
        return float((counts if self.of_windows is None else counts * self.of_windows).sum())
