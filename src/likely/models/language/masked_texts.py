"""Texts as a masked language model reads them: tokens in order, sentences of documents, and masks to fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataError
from ...core.spec import _short
from ...data.text import Vocabulary, as_texts
from ...data.text.byte_pairs import BytePairVocabulary
from ...data.text.words import WordVocabulary

__all__ = ["MASK", "Blanks", "as_documents", "in_order", "unknown_token", "with_blanks"]

MASK = "[mask]"
"""What stands in a text for a token that is to be filled in."""


class Blanks(NamedTuple):
    """Texts with masks as tokens, where they begin, whose each mask is and where, and the text around the masks."""

    values: np.ndarray
    offsets: np.ndarray
    owner: np.ndarray
    place: np.ndarray
    around: list[list[str]]


def in_order(pieces: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of all texts one after the other, and where each begins.

    >>> in_order([np.array([1, 2]), np.array([3])])
    (array([1, 2, 3]), array([0, 2, 3]))
    """
    return np.concatenate(pieces), np.cumsum([0, *(len(piece) for piece in pieces)])


def with_blanks(vocabulary: Vocabulary, texts: Sequence[str], name: str = "text") -> Blanks:
    """Texts whose [mask]s are tokens of their own, with the number after the last one.

    A byte pair that begins a word has the space before it, so the space before a mask is part of what fills it.

    >>> from likely.data.text import Words
    >>> with_blanks(Words().fit("the cat sat"), ["the [mask] sat"]).values
    array([2, 4, 1])
    """
    spaced = isinstance(vocabulary, BytePairVocabulary)
    mask = np.array([vocabulary.size])
    coded, around = [], []
    for number, text in enumerate(texts):
        called = name if len(texts) == 1 else f"{name}[{number}]"
        parts = text.split(MASK)
        if len(parts) == 1:
            raise DataError(f"{called} has no {MASK}: write {MASK} in place of a token that is to be filled in.")
        if spaced:
            parts = [part.removesuffix(" ") for part in parts[:-1]] + parts[-1:]
        pieces = [vocabulary.encode(part, called) if part else mask[:0] for part in parts]
        coded.append(np.concatenate([piece for own in pieces for piece in (own, mask)][:-1]))
        around.append(parts)
    values, offsets = in_order(coded)
    at = np.flatnonzero(values == vocabulary.size)
    owner = np.searchsorted(offsets, at, side="right") - 1
    return Blanks(values, offsets, owner, at - offsets[owner], around)


def as_documents(documents: Any, name: str = "texts") -> tuple[Sequence[str], np.ndarray]:
    """Documents, each a list of sentences, as all sentences and the number of the document of each.

    >>> as_documents([["It rains.", "We stay."], ["Who is there?"]])
    (['It rains.', 'We stay.', 'Who is there?'], array([0, 0, 1]))
    """
    listed = isinstance(documents, list | tuple) and all(isinstance(own, list | tuple) for own in documents)
    if not listed or not documents:
        raise DataError(
            f"{name} must be a list of documents, each a list of sentences, with next_sentence=True; "
            f"found {_short(documents)}."
        )
    by_document = [as_texts(own, f"{name}[{number}]") for number, own in enumerate(documents)]
    sizes = [len(own) for own in by_document]
    return [sentence for own in by_document for sentence in own], np.repeat(np.arange(len(sizes)), sizes)


def unknown_token(vocabulary: Vocabulary) -> int | None:
    """The token that stands for all unknown words or characters, if there is one.

    >>> from likely.data.text import BPE, Words
    >>> unknown_token(Words().fit("a b")), unknown_token(BPE(256).fit("a b"))
    (2, None)
    """
    has_one = isinstance(vocabulary, WordVocabulary) or getattr(vocabulary, "unknown", False)
    return vocabulary.size - 1 if has_one else None
