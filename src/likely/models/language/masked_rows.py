"""The rows that a masked language model learns from: windows of text, or pairs of sentences, hidden anew in each batch.

A batch has tokens as the network sees them, x (n, t), and as its condition (n, 2, k) the places that are asked about
and what was there. Where rows are pairs, the last place is the boundary between the two, and the answer is 1 if the
second follows the first in its document, or 0 if it was drawn from all others, as every second one is.

Rows in a batch have similar lengths, and are as wide as the longest of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Generator, Tensor

from ...core.random import current_generator
from ...data.rows import arranged
from ...inference.dataset import Batch, Dataset
from .masking import hide
from .windows import ABSENT, BLOCK, Windows

__all__ = ["MaskedWindows", "SentencePairs"]

FIXED = 20_231
"""The seed of what is hidden where nobody trains: the same each time."""


@dataclass(frozen=True, kw_only=True)
class MaskedWindows(Windows):
    """Windows of `context` tokens, of which a `fraction` is hidden.

    >>> rows = MaskedWindows.of(torch.tensor([9, 1, 2, 3, 1, 2]), torch.tensor([0, 6]), 3)
    >>> rows = replace(rows, fraction=0.3, size=4)
    >>> [tuple(part.shape) for part in (rows.batch(slice(0, 2)).x, rows.batch(slice(0, 2)).condition)]
    [(2, 3), (2, 2, 1)]
    """

    fraction: float = 0.15
    size: int = 1
    """Tokens of the vocabulary, after which comes the mask."""

    def batch(self, index: Tensor | slice) -> Batch:
        batch = super().batch(index)
        x = batch.x[..., 1:]  # the first is what a window only reads
        x = x[..., : max(1, int((x >= 0).sum(-1).max()))]
        seen, *asked = hide(x, self.fraction, self.size, _generator(index))
        return batch._replace(x=seen, condition=torch.stack(asked, -2))

    def order(self, generator: Generator, batch_size: int) -> Tensor:
        return _by_length((self.last - self.starts).clamp_max(self.context), generator, batch_size)


@dataclass(frozen=True, kw_only=True)
class SentencePairs(Dataset):
    """Sentences (x holds all, one after the other), each with the next one of its document, or with any other.

    The last of a document stands alone. Of two that are longer than the context together, the longer one is cut.
    """

    starts: Tensor
    """Where each sentence begins in x."""
    lengths: Tensor
    follows: Tensor
    """Whether the next sentence is of the same document."""
    numbers: Tensor
    """Which sentences are rows."""
    context: int
    fraction: float
    size: int
    """Tokens of the vocabulary, after which come the mask and the boundary."""

    @classmethod
    def of(
        cls,
        values: Tensor,
        offsets: Tensor,
        document: Tensor,
        context: int,
        fraction: float,
        size: int,
        weight: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Sentences that start at these offsets, with a boundary before each; `document` says whose each is."""
        follows = torch.cat([document[1:] == document[:-1], torch.zeros(1, dtype=torch.bool)])
        return cls(
            values,
            None,
            None if weight is None else weight[document].to(dtype),
            dtype,
            integer=True,
            starts=offsets[:-1] + 1,
            lengths=offsets.diff() - 1,
            follows=follows,
            numbers=torch.arange(len(document)),
            context=context,
            fraction=fraction,
            size=size,
        )

    def on(self, device: torch.device) -> Self:
        """The same on another device."""
        names = ("x", "starts", "lengths", "follows", "numbers", "weight")
        held: dict[str, Any] = {name: getattr(self, name) for name in names}
        parts: dict[str, Any] = {name: part if part is None else part.to(device) for name, part in held.items()}
        return replace(self, **parts)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def plain(self) -> bool:
        return False

    def batch(self, index: Tensor | slice) -> Batch:
        first, generator = self.numbers[index], _generator(index)
        count = len(self.starts)
        paired = self.follows[first]
        true = (first + 1).clamp_max(count - 1)
        swapped = torch.rand(first.shape, generator=generator).to(first.device) < 0.5
        other = torch.randint(max(1, count - 1), first.shape, generator=generator).to(first.device)
        swapped = swapped & (count > 1)
        second = torch.where(swapped, (other + (other >= true).long()).clamp_max(count - 1), true)
        x, boundary = self._joined(first, second, paired)
        seen, places, wanted = hide(x, self.fraction, self.size, generator)
        answer = torch.where(paired, (~swapped).long(), ABSENT)
        places = torch.cat([places, boundary.unsqueeze(-1)], -1)
        wanted = torch.cat([wanted, answer.unsqueeze(-1)], -1)
        weight = self.weight
        assert weight is None or isinstance(weight, Tensor)
        own = None if weight is None else weight[first].unsqueeze(-1)
        return Batch(seen, None, own, torch.stack([places, wanted], -2))

    def _joined(self, first: Tensor, second: Tensor, paired: Tensor) -> tuple[Tensor, Tensor]:
        """Both sentences with the boundary between them, (…, t), and where that is; or the first one alone."""
        one, two = shortened(self.lengths[first], self.lengths[second] * paired, paired, self.context)
        return pair_up(self.x, self.size + 1, (self.starts[first], one), (self.starts[second], two), paired)

    def order(self, generator: Generator, batch_size: int) -> Tensor:
        first = self.numbers
        next_one = self.lengths[(first + 1).clamp_max(len(self.lengths) - 1)] * self.follows[first]
        return _by_length(self.lengths[first] + next_one, generator, batch_size)

    def subset(self, rows: Tensor) -> Self:
        return replace(self, numbers=self.numbers[rows])

    def blocks(self, part: slice | None = None, rows: int | None = None) -> Iterator[Batch]:
        most = max(1, BLOCK // self.context)
        start, stop, _ = (part or slice(None)).indices(len(self))
        step = min(most, rows or most)
        for at in range(start, stop, step):
            yield self.batch(slice(at, min(at + step, stop)))

    def total_weight(self) -> float:
        counts = self.lengths[self.numbers].clamp(1, self.context).double()
        assert self.weight is None or isinstance(self.weight, Tensor)
        return float((counts if self.weight is None else counts * self.weight[self.numbers]).sum())


def shortened(one: Tensor, two: Tensor, paired: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Lengths of two sentences that fit the context together with the boundary between them: the longer is cut.

    >>> [part.tolist() for part in shortened(*torch.tensor([[9, 2, 9, 3], [2, 9, 9, 0]]), torch.tensor([True] * 4), 8)]
    [[5, 2, 4, 3], [2, 5, 3, 0]]
    """
    room = context - paired.long()
    half = (room + 1) // 2
    kept = torch.minimum(one, torch.maximum(half, room - two))
    return kept, torch.minimum(two, room - kept)


def pair_up(
    values: Any, boundary: int, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor], paired: Tensor
) -> tuple[Tensor, Tensor]:
    """Pieces (start, length) of values with a boundary between them, (…, t), ABSENT after the end; and its place.

    >>> one, two = (torch.tensor([0]), torch.tensor([2])), (torch.tensor([3]), torch.tensor([1]))
    >>> pair_up(torch.tensor([5, 6, 7, 8]), 9, one, two, torch.tensor([True]))
    (tensor([[5, 6, 9, 8]]), tensor([2]))
    """
    (start, length), (start_two, length_two) = first, second
    end = length + paired.long() * (1 + length_two)
    at = torch.arange(max(1, int(end.max())), device=start.device).expand(*start.shape, -1)
    own, middle = length.unsqueeze(-1), paired.unsqueeze(-1)
    place = torch.where(at < own, start.unsqueeze(-1) + at, start_two.unsqueeze(-1) + at - own - 1)
    x = values[place.clamp(0, len(values) - 1)]
    x = torch.where((at == own) & middle, boundary, x)
    return torch.where(at < end.unsqueeze(-1), x, ABSENT), (length * paired.long()).clamp_max(at.shape[-1] - 1)


def _generator(index: Tensor | slice) -> Generator:
    """That of the run for rows by number, as training asks for them; else one that hides the same each time."""
    own = current_generator() if isinstance(index, Tensor) or index == slice(None) else None
    if own is not None:
        return own
    start = index.start if isinstance(index, slice) and index.start else 0
    return torch.Generator().manual_seed(FIXED + start)


def _by_length(lengths: Tensor, generator: Generator, batch_size: int) -> Tensor:
    """A new order of rows in which rows of similar length share a batch."""
    order = torch.randperm(len(lengths), generator=generator)
    return arranged(lengths.cpu(), order, batch_size, generator) if batch_size < len(lengths) else order
