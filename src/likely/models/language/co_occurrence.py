"""How often words occur near one another: the counts behind softmax and least-squares word vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .sentences import Sentences

__all__ = ["Pairs", "co_occurrences"]

BLOCK = 1 << 22
"""Pairs that are sorted at once."""


class Pairs(NamedTuple):
    """Words and neighbours that occur together, in order, and how much: a sparse table (V, V)."""

    words: np.ndarray  # (m,)
    neighbours: np.ndarray  # (m,)
    counts: np.ndarray  # (m,)


def co_occurrences(text: Sentences, window: int, *, by_distance: bool) -> Pairs:
    """Counts of all pairs at most `window` apart in a sentence; `by_distance` a pair d words apart counts 1/d.

    >>> from likely.models.language.sentences import read_sentences
    >>> co_occurrences(read_sentences(["a b a"], 1), 2, by_distance=True)
    Pairs(words=array([0, 0, 1]), neighbours=array([0, 1, 0]), counts=array([1., 2., 2.]))
    """
    size, codes, counts = len(text.vocabulary), np.empty(0, np.int64), np.empty(0)
    lengths = np.diff(text.offsets)
    step = max(1, BLOCK // (2 * window * max(1, int(lengths.max(initial=1)))))
    for first in range(0, len(lengths), step):
        ends = text.offsets[first : first + step + 1]
        own = _pairs(text.tokens, ends, text.weight[first:], window, size, by_distance)
        codes, place = np.unique(np.concatenate([codes, own[0]]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, own[1]]), len(codes)).astype(np.float64)
    return Pairs(codes // size, codes % size, counts)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _pairs(
    tokens: np.ndarray, offsets: np.ndarray, weight: np.ndarray, window: int, size: int, by_distance: bool
) -> tuple[np.ndarray, np.ndarray]:
    """word · V + neighbour of each pair, and what it counts."""
    most = 0
    for n in range(offsets.shape[0] - 1):
        most += 2 * window * (offsets[n + 1] - offsets[n])
    codes, counts, place = np.empty(most, np.int64), np.empty(most), 0
    for n in range(offsets.shape[0] - 1):
        for i in range(offsets[n], offsets[n + 1]):
            for j in range(max(offsets[n], i - window), min(offsets[n + 1], i + window + 1)):
                if j != i:
                    codes[place] = np.int64(tokens[i]) * size + tokens[j]
                    counts[place] = weight[n] / (abs(i - j) if by_distance else 1.0)
                    place += 1
    return codes[:place], counts[:place]
