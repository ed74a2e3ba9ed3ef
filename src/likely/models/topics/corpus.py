"""A corpus as three flat arrays: the words of all documents one after another, how often, and where each begins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Corpus"]


class Corpus(NamedTuple):
    """Document d holds the words `words[starts[d]:starts[d + 1]]`, each `counts` times, of a vocabulary of `size`.

    >>> corpus = Corpus(np.array([0, 2, 3]), np.array([0, 4, 1], np.int32), np.array([2.0, 1.0, 3.0]), 5)
    >>> corpus.documents, corpus.lengths()
    (2, array([3., 3.]))
    >>> corpus.tokens()
    (array([0, 3, 6]), array([0, 0, 4, 1, 1, 1], dtype=int32))
    """

    starts: np.ndarray  # (n + 1,) int64
    words: np.ndarray  # (entries,) int32, distinct within a document
    counts: np.ndarray  # (entries,) float64, whole and positive
    size: int

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.starts) - 1

    def lengths(self) -> np.ndarray:
        """The number of tokens of each document."""
        return np.diff(np.concatenate([[0.0], np.cumsum(self.counts)])[self.starts])

    def rows(self, part: slice) -> Corpus:
        """Some documents in a row."""
        start, stop, _ = part.indices(self.documents)
        starts = self.starts[start : stop + 1]
        entries = slice(starts[0], starts[-1])
        return Corpus(starts - starts[0], self.words[entries], self.counts[entries], self.size)

    def take(self, documents: np.ndarray) -> Corpus:
        """Documents by number, in the order given."""
        sizes = np.diff(self.starts)[documents]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[documents] - starts[:-1], sizes)
        return Corpus(starts, self.words[entries], self.counts[entries], self.size)

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
        return Corpus(starts, (pairs % self.size).astype(np.int32), counts.astype(np.float64), self.size)
