"""Sentences as the loops of word vectors read them: numbers of words, one sentence after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataError

__all__ = ["Sentences", "read_sentences", "read_words"]


class Sentences(NamedTuple):
    """Words by falling count, how often each occurs, and the text as numbers of words that are in the vocabulary."""

    vocabulary: list[str]
    counts: np.ndarray  # (V,)
    tokens: np.ndarray  # (T,)
    offsets: np.ndarray  # (n + 1,) where each sentence starts
    weight: np.ndarray  # (n,)


def read_sentences(X: Any, min_count: int, weight: np.ndarray | None = None) -> Sentences:
    """Sentences, strings to be split on white space or lists of words, without the words rarer than `min_count`.

    >>> read_sentences(["a b a", ["b", "c"]], min_count=2)[:3]
    (['a', 'b'], array([2, 2]), array([0, 1, 0, 1], dtype=int32))
    """
    rows = read_words(X)
    counted = Counter(chain.from_iterable(rows))
    kept = sorted((word for word, count in counted.items() if count >= min_count), key=lambda w: (-counted[w], w))
    if len(kept) < 2:
        raise DataError(
            f"X has {len(counted)} different words, of which {len(kept)} occur {min_count} times or more; "
            "word vectors need two: lower min_count or give more text."
        )
    number = {word: place for place, word in enumerate(kept)}
    numbers = [[number[word] for word in row if word in number] for row in rows]
    lengths = np.array([len(row) for row in numbers])
    return Sentences(
        kept,
        np.array([counted[word] for word in kept]),
        np.fromiter(chain.from_iterable(numbers), dtype=np.int32, count=int(lengths.sum())),
        np.concatenate([[0], lengths.cumsum()]).astype(np.int64),
        np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=np.float64),
    )


def read_words(X: Any) -> list[Sequence[str]]:
    """The words of each row."""
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise DataError(f"X is {type(X).__name__}; it must be a list of sentences: strings, or lists of words.")
    rows: list[Sequence[str]] = []
    for place, row in enumerate(X):
        words = row.split() if isinstance(row, str) else row
        listed = isinstance(words, list | tuple | np.ndarray)
        if not listed or not all(isinstance(word, str) for word in words):
            raise DataError(f"X[{place}] is not a sentence: a string, or a list of words that are strings.")
        rows.append(words)
    if not rows:
        raise DataError("X is empty: there is no sentence in it.")
    return rows
