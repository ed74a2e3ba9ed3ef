"""A corpus: the words of each document as rows of any length, and beside them how often each word is there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from ...data.rows import Ragged

__all__ = ["Corpus"]


class Corpus(NamedTuple):
    """The distinct words of each document, row by row; `counts` says how often each is there. V = `size` words exist.

    >>> documents = Ragged.of([np.array([0, 4], np.int32), np.array([1], np.int32)])
    >>> corpus = Corpus(documents, np.array([2.0, 1.0, 3.0]), 5)
    >>> corpus.documents, corpus.lengths()
    (2, array([3., 3.]))
    >>> corpus.tokens()
    (array([0, 3, 6]), array([0, 0, 4, 1, 1, 1], dtype=int32))
    """

    rows: Ragged  # of (entries,) int32, distinct within a document; a document may be empty
    counts: np.ndarray  # (entries,) float64, integers above 0
    size: int

    @staticmethod
    def of(starts: np.ndarray, words: np.ndarray, counts: np.ndarray, size: int) -> Corpus:
        """Document d holds the words `words[starts[d]:starts[d + 1]]`."""
        return Corpus(Ragged.from_numpy(words, starts), counts, size)

    @property
    def starts(self) -> np.ndarray:
        """Where the words of each document begin, (n + 1,)."""
        return self.rows.offsets.numpy()

    @property
    def words(self) -> np.ndarray:
        """The words of all documents, one after the other: (entries,)."""
        return self.rows.values.numpy()

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.rows)

    def lengths(self) -> np.ndarray:
        """The number of tokens of each document."""
        return np.diff(np.concatenate([[0.0], np.cumsum(self.counts)])[self.starts])

    def take(self, documents: slice | np.ndarray) -> Corpus:
        """Some documents: a slice of them, or by number in the order given."""
        index = documents if isinstance(documents, slice) else torch.from_numpy(documents)
        counts = Ragged.from_numpy(self.counts, self.starts)
        return Corpus(self.rows[index], counts[index].values.numpy(), self.size)

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each document begins, and every token by itself."""
        repeats = self.counts.astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(repeats)])[self.starts]
        return starts, np.repeat(self.words, repeats)

    def halves(self, seed: int) -> tuple[Corpus, Corpus]:
        """The tokens of each document in two parts at random: ⌊n/2⌋ of them, and the others."""
        starts, words = self.tokens()
        lengths = np.diff(starts)
        owner = np.repeat(np.arange(self.documents), lengths)
        order = np.lexsort((np.random.default_rng(seed).random(len(words)), owner))
        first = np.arange(len(words)) - starts[:-1][owner] < (lengths // 2)[owner]
        return self._counted(owner[first], words[order][first]), self._counted(owner[~first], words[order][~first])

    def _counted(self, owner: np.ndarray, words: np.ndarray) -> Corpus:
        pairs, counts = np.unique(owner * self.size + words, return_counts=True)
        entries = np.bincount(pairs // self.size, minlength=self.documents)
        starts = np.concatenate([[0], np.cumsum(entries)])
        return Corpus.of(starts, (pairs % self.size).astype(np.int32), counts.astype(np.float64), self.size)
