"""Texts as one sequence of symbols: tokens, and a boundary before each text."""

from __future__ import annotations

import numpy as np

from ...data.text import Vocabulary

__all__ = ["joined", "kept"]


def joined(vocabulary: Vocabulary, texts: list[str], ends: bool, name: str = "texts") -> tuple[np.ndarray, np.ndarray]:
    """All texts one after the other as tokens, each with a boundary before it, and after it if it `ends`; and offsets.

    >>> from likely.data.text import Characters
    >>> joined(Characters().fit("ab"), ["ab", "b"], True)
    (array([2, 0, 1, 2, 2, 1, 2]), array([0, 4, 7]))
    """
    boundary = np.array([vocabulary.size])
    after = boundary if ends else boundary[:0]
    alone = len(texts) == 1
    coded = [vocabulary.encode(text, name if alone else f"{name}[{place}]") for place, text in enumerate(texts)]
    pieces = [np.concatenate([boundary, own, after]) for own in coded]
    return np.concatenate(pieces), np.cumsum([0, *(len(piece) for piece in pieces)])


def kept(values: np.ndarray, offsets: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Only some of the texts: those of which this is true."""
    lengths = np.diff(offsets)
    return values[np.repeat(which, lengths)], np.cumsum([0, *lengths[which]])
