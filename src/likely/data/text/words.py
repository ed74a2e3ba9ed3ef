"""Words as tokens: runs of letters and digits, and each other mark by itself. White space is not kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.errors import DataError, ModelFileError
from ...core.spec import is_integer, require
from .base import Tokens, Vocabulary, as_texts

__all__ = ["WordVocabulary", "Words"]

PIECES = re.compile(r"\w+|[^\w\s]")
BEFORE, AFTER = frozenset(".,;:!?)]}%"), frozenset("([{")
"""Marks that stand close to the word before them, and to the word after them."""
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class Words(Tokens):
    """One token for each word and mark that the training texts have `min_count` times or more, the most frequent first.

    The last token stands for all other words, and is decoded as �. `decode` puts one space between words, so a text
    with other white space, or with unknown words, does not come back as it was.

    >>> vocabulary = Words().fit("to be, or not to be")
    >>> vocabulary.encode("to sleep, or not"), vocabulary.decode([1, 0, 2, 5])
    (array([1, 5, 2, 4, 3]), 'to be, �')
    """

    min_count: int = 1

    def validate(self) -> None:
        require(is_integer(self.min_count), self, "min_count", "a positive integer")

    def fit(self, texts: Any) -> WordVocabulary:
        """The words of a string, or of a list of strings."""
        counts = Counter(word for text in as_texts(texts) for word in PIECES.findall(text))
        kept = [word for word, count in counts.items() if count >= self.min_count]
        if not kept:
            raise DataError(f"texts has no word that is there {self.min_count} times; use a smaller min_count.")
        return WordVocabulary(tuple(sorted(kept, key=lambda word: (-counts[word], word))))


@dataclass(frozen=True)
class WordVocabulary(Vocabulary):
    """Words by their numbers; the number after the last one is that of all other words."""

    kind: ClassVar[str] = "words"

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.words) + 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, text: str, name: str = "text") -> np.ndarray:
        known, other = self._numbers, len(self.words)
        return np.array([known.get(word, other) for word in PIECES.findall(text)], np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        words = [*self.words, UNKNOWN]
        pieces: list[str] = []
        for number in self.checked(tokens).tolist():
            close = not pieces or words[number] in BEFORE or pieces[-1] in AFTER
            pieces += [words[number]] if close else [" ", words[number]]
        return "".join(pieces)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WordVocabulary:
        words = data.get("words")
        whole = isinstance(words, list) and all(isinstance(word, str) and PIECES.fullmatch(word) for word in words)
        if not whole or not words or len(set(words)) != len(words):
            raise ModelFileError("The file has a vocabulary whose words are not different words.")
        return cls(tuple(words))
