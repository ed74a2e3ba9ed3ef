"""Texts as one sequence of symbols: tokens, and a boundary before each text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.errors import DataError
from ...data.text import Vocabulary, parts_of

__all__ = ["joined", "kept", "perplexity_of", "sums", "without"]


def joined(
    vocabulary: Vocabulary, texts: Sequence[str], ends: bool, name: str = "texts", dtype: type[np.integer] = np.int64
) -> tuple[np.ndarray, np.ndarray]:
    """All texts one after the other as tokens, each with a boundary before it, and after it if it `ends`; and offsets.

    >>> from likely.data.text import Characters
    >>> joined(Characters().fit("ab"), ["ab", "b"], True)
    (array([2, 0, 1, 2, 2, 1, 2]), array([0, 4, 7]))
    """
    boundary = np.array([vocabulary.size], dtype)
    pieces, offsets = [boundary[:0]], [0]
    for place in range(len(texts)):
        own = name if len(texts) == 1 else f"{name}[{place}]"
        try:
            coded = [vocabulary.encode(part, own).astype(dtype) for part in parts_of(texts, place)]
        except DataError:
            vocabulary.encode(texts[place], own)  # says where in the whole text
            raise
        pieces += [boundary, *coded, boundary[: int(ends)]]
        offsets.append(offsets[-1] + 1 + sum(map(len, coded)) + ends)
    return np.concatenate(pieces), np.array(offsets)


def kept(values: np.ndarray, offsets: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Only some of the texts: those of which this is true."""
    lengths = np.diff(offsets)
    return values[np.repeat(which, lengths)], np.cumsum([0, *lengths[which]])


def without(values: np.ndarray, offsets: np.ndarray, symbols: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The texts without some of the symbols after their boundaries; one that loses all of them is still there.

    >>> without(np.array([9, 0, 1, 9, 2]), np.array([0, 3, 5]), np.array([False, True, True]))
    (array([9, 0, 9]), array([0, 2, 3]))
    """
    stay = np.ones(len(values), bool)
    inner = np.ones(len(values), bool)
    inner[offsets[:-1]] = False
    stay[inner] = ~symbols
    return values[stay], np.concatenate([[0], np.cumsum(stay)[offsets[1:] - 1]])


def sums(numbers: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum over the symbols after the boundary of each text, (n,), from one number for each of them.

    >>> sums(np.array([1.0, 2.0, 4.0]), np.array([0, 3, 4, 6]))
    array([3., 0., 4.])
    """
    ends = np.concatenate([[0], np.cumsum(np.diff(offsets) - 1)])
    return np.add.reduceat(np.append(numbers, 0.0), ends[:-1]) * (np.diff(ends) > 0)


def perplexity_of(log_probs: np.ndarray, count: int) -> float:
    """exp(−Σ log p / count), ∞ beyond the largest number.

    >>> perplexity_of(np.log([0.5, 0.5]), 2), perplexity_of(np.array([-1e9]), 1)
    (2.0, inf)
    """
    with np.errstate(over="ignore"):
        return float(np.exp(-np.float64(np.sum(log_probs)) / count))
