"""Rows that are not a dense tensor: sequences and sets of any lengths, graphs. They give rows by index as a batch.

A batch is of the same kind as all the data: some sequences, some graphs as one graph. So whatever goes through data in
batches takes tensors and these alike: it counts them, indexes them, moves them, and hands them to a module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError

__all__ = ["Inputs", "Ragged", "Rows", "arranged", "index_of_parts", "offsets_from", "row_size"]

WINDOW = 32
"""Batches whose rows are sorted by length together."""


class Rows(ABC):
    """What all kinds have in common. A row has positions: steps of a sequence, nodes of a graph."""

    kind: str
    """What one row is called in messages."""
    ndim = 3
    """More axes than a table has."""

    listed = True
    """Whether the user gave a list of rows, so that answers for all positions come in a list; otherwise in an array."""

    positional = True
    """Whether the parts of a row are positions, which may have targets of their own; if not, they are its columns."""

    offsets: Tensor
    """Where the positions of each row start, (n + 1,)."""

    @abstractmethod
    def __getitem__(self, index: Tensor | slice) -> Self:
        """The rows with these numbers."""

    @abstractmethod
    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same rows with their features changed."""

    @abstractmethod
    def with_features(self, features: Tensor) -> Self:
        """The same rows with other numbers, of the same type, at their positions; what was made of the rest is kept."""

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """All that they hold, features first."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a row, as networks are built for it."""

    @property
    @abstractmethod
    def features(self) -> Tensor:
        """The numbers at each position of each row, one row after the other: (positions, …)."""

    @abstractmethod
    def move(self, device: torch.device) -> Self:
        """The same rows on another device."""

    def to(self, *targets: torch.device | torch.dtype) -> Self:
        """The same rows on another device, or with features of another type; themselves if nothing changes."""
        moved = self
        for where in targets:
            if not isinstance(where, torch.dtype):
                moved = moved if moved.device == where else moved.move(where)
            elif moved.dtype != where:
                moved = moved.map(partial(Tensor.to, dtype=where))
        if moved is not self:
            moved.listed = self.listed
        return moved

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Self]:
        return iter(self.split(1))

    def split(self, size: int) -> list[Self]:
        """Parts of so many rows."""
        return [self[first : first + size] for first in range(0, len(self), size)]

    @property
    def lengths(self) -> Tensor:
        """Positions of each row, (n,)."""
        return self.offsets.diff()

    @property
    def owner(self) -> Tensor:
        """The row that each position belongs to: (positions,)."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.device), self.lengths)

    def parted(self, answers: np.ndarray, axis: int = 0, offsets: Tensor | None = None) -> Any:
        """Answers for all positions in the form in which the rows came: a list of one array for each, or one array.

        `offsets` say where the answers of each row start, if not where its own positions do.
        """
        starts = self.offsets if offsets is None else offsets
        return np.split(answers, starts[1:-1].tolist(), axis) if self.listed else answers

    @property
    def device(self) -> torch.device:
        """Where the features are."""
        return self.features.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the features."""
        return self.features.dtype

    def numel(self) -> int:
        """How many numbers the features are."""
        return self.features.numel()

    def arranged(self, order: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
        """The same order of rows, except that rows of similar length share a batch, and batches come at random.

        Only rows of the same few dozen batches are exchanged, so every epoch mixes them anew.
        """
        return arranged(self.lengths.cpu(), order, batch_size, generator)


def arranged(lengths: Tensor, order: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
    """An order of rows of these lengths, changed so that those of similar length share a batch.

    >>> generator = torch.Generator().manual_seed(0)
    >>> order = arranged(torch.tensor([1, 9, 1, 9]), torch.arange(4), 2, generator)
    >>> sorted(map(sorted, order.view(2, 2).tolist()))
    [[0, 2], [1, 3]]
    """
    full = len(order) // batch_size
    windows = order.split(WINDOW * batch_size)
    by_length = torch.cat([window[lengths[window].argsort(stable=True)] for window in windows])
    whole = by_length[: full * batch_size].view(full, batch_size)
    mixed = whole[torch.randperm(full, generator=generator)].reshape(-1)
    return torch.cat([mixed, by_length[full * batch_size :]])


Inputs = Tensor | Rows
"""What a network is given: rows of a tensor, or rows that are none."""


class Ragged(Rows):
    """Sequences or sets of any lengths: their steps one after the other, (steps, …), and where each starts.

    The only container of such rows: of a network's inputs and targets, of what a hidden Markov model or a Kalman filter
    observes (there NaN is a missing value), of the words of documents.

    >>> rows = Ragged.of([[[1.0], [2.0]], [[3.0]]])
    >>> len(rows), rows.lengths.tolist(), rows[1:].values.tolist()
    (2, [2, 1], [[3.0]])
    >>> padded, present = rows.padded()
    >>> padded.shape, present.tolist(), rows.flat(padded).tolist()
    (torch.Size([2, 2, 1]), [[True, True], [True, False]], [[1.0], [2.0], [3.0]])
    >>> rows.parted(np.arange(3))
    [array([0, 1]), array([2])]
    """

    kind = "sequence"

    def __init__(self, values: Tensor, offsets: Tensor) -> None:
        self.values, self.offsets = values, offsets
        self._present: Tensor | None = None

    @staticmethod
    def from_numpy(values: np.ndarray, offsets: np.ndarray) -> Ragged:
        """From arrays, whose memory they share; nothing is checked.

        >>> Ragged.from_numpy(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3])).lengths
        tensor([2, 1])
        """
        return Ragged(torch.from_numpy(values), torch.from_numpy(offsets))

    @staticmethod
    def of(sequences: Sequence[Any], name: str = "X", *, missing: bool = False) -> Ragged:
        """From a list of arrays (steps, features), or (steps,) of token numbers; NaN is refused unless `missing`."""
        pieces = [_piece(sequence, f"{name}[{i}]", missing) for i, sequence in enumerate(sequences)]
        if not pieces:
            raise DataError(f"{name} has no sequences; at least one is needed.")
        for i, piece in enumerate(pieces):
            if piece.shape[1:] != pieces[0].shape[1:]:
                own, first = (
                    f"{p.shape[1:].numel()} features" if p.ndim > 1 else "plain numbers" for p in (piece, pieces[0])
                )
                raise DataError(f"{name}[{i}] has {own} at each step, but {name}[0] has {first}; all need the same.")
        return Ragged(torch.cat(pieces), offsets_from(torch.tensor([len(piece) for piece in pieces])))

    @staticmethod
    def from_padded(padded: Tensor, lengths: Tensor) -> Ragged:
        """The first so many steps of each row of (n, longest, …): the inverse of `padded`.

        >>> Ragged.from_padded(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).values
        tensor([1, 2, 3])
        """
        present = torch.arange(padded.shape[1], device=padded.device) < lengths.unsqueeze(1)
        return Ragged(padded[present], offsets_from(lengths))

    @property
    def features(self) -> Tensor:
        return self.values

    @property
    def shape(self) -> tuple[int, ...]:
        """(longest, features), or (longest,) for token numbers."""
        return (int(self.lengths.max()), *self.values.shape[1:])

    def __getitem__(self, index: Tensor | slice) -> Ragged:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                if stop - start == len(self):
                    return self
                ends = self.offsets[start : max(start, stop) + 1]
                return Ragged(self.values[int(ends[0]) : int(ends[-1])], ends - ends[0])
            index = torch.arange(start, stop, step, device=self.device)
        positions, offsets = index_of_parts(self.offsets, index)
        return Ragged(self.values.index_select(0, positions), offsets)

    def map(self, change: Callable[[Tensor], Tensor]) -> Ragged:
        return Ragged(change(self.values), self.offsets)

    def with_features(self, features: Tensor) -> Ragged:
        changed = Ragged(features, self.offsets)
        changed._present, changed.listed = self._present, self.listed
        return changed

    def move(self, device: torch.device) -> Ragged:
        return Ragged(self.values.to(device), self.offsets.to(device))

    def tensors(self) -> tuple[Tensor, ...]:
        return self.values, self.offsets

    @property
    def present(self) -> Tensor:
        """Which steps of the padded sequences there are: (n, longest)."""
        if self._present is None:
            lengths = self.lengths
            self._present = torch.arange(int(lengths.max()), device=self.device) < lengths.unsqueeze(1)
        return self._present

    def padded(self) -> tuple[Tensor, Tensor]:
        """One dense tensor (n, longest, …) with 0 after the end of shorter ones, and which steps there are."""
        present = self.present
        dense = self.values.new_zeros(*present.shape, *self.values.shape[1:])
        dense[present] = self.values
        return dense, present

    def flat(self, padded: Tensor) -> Tensor:
        """What there is of a padded tensor (n, longest, …), one sequence after the other: (steps, …)."""
        return padded[self.present]


def index_of_parts(offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The indices of some rows' positions, one row after the other, and where each row then starts.

    >>> index_of_parts(torch.tensor([0, 2, 5]), torch.tensor([1, 0]))
    (tensor([2, 3, 4, 0, 1]), tensor([0, 3, 5]))
    """
    if rows.ndim != 1:
        raise NotImplementedError("rows of different lengths cannot be stacked into one tensor")
    lengths = offsets[rows + 1] - offsets[rows]
    ends = offsets_from(lengths)
    shift = torch.repeat_interleave(offsets[rows] - ends[:-1], lengths)
    return torch.arange(int(ends[-1]), device=offsets.device) + shift, ends


def offsets_from(lengths: Tensor) -> Tensor:
    """Where rows of these lengths start, one after the other, and where the last one ends: (n + 1,).

    >>> offsets_from(torch.tensor([2, 3]))
    tensor([0, 2, 5])
    """
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def row_size(x: Inputs) -> int:
    """Numbers in one row, on average."""
    return max(1, x.numel() // max(1, len(x)))


def _piece(sequence: Any, name: str, missing: bool) -> Tensor:
    """One sequence as a tensor (steps, …) of numbers, all finite but for those that may be missing."""
    try:
        piece = sequence.detach() if isinstance(sequence, Tensor) else torch.from_numpy(_numbers(sequence))
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is not an array of numbers ({str(error).partition(chr(10))[0]}).") from error
    if piece.ndim == 0 or len(piece) == 0:
        raise DataError(f"{name} is empty: it has no steps; leave it out.")
    if piece.ndim > 2 or 0 in piece.shape:
        raise DataError(f"{name} has shape {tuple(piece.shape)}; a sequence is (steps, features) or (steps,).")
    if piece.is_floating_point():
        bad = (piece.isinf() if missing else ~piece.isfinite()).nonzero()
        if len(bad):
            raise DataError(f"{name} contains {piece[tuple(bad[0])].item()} at step {int(bad[0, 0])}; drop or fill it.")
    return piece


def _numbers(sequence: Any) -> np.ndarray:
    """A copy; what a frame with missing integers holds are objects, which are numbers still."""
    array = np.array(sequence)
    return array.astype(np.float64) if array.dtype == object else array
