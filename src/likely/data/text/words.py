"""Words as tokens: runs of letters and digits, and each other mark by itself. White space is not kept.

A text may come cut already, as a list of its words: then these are its tokens, whatever they are made of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from ...core.errors import DataError, ModelFileError
from ...core.spec import is_integer, require
from .base import Text, Tokens, Vocabulary, is_cut, parts

__all__ = ["WordVocabulary", "Words"]

PIECES = re.compile(r"\w+|[^\w\s]")
BEFORE, AFTER = frozenset(".,;:!?)]}%"), frozenset("([{")
"""Marks that stand close to the word before them, and to the word after them."""
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
CUTS = ("marks", "spaces")


class Words(Tokens):
    """One token for each word and mark that the training texts have `min_count` times or more, the most frequent first.

    The last token stands for all other words, and is decoded as �. `decode` puts one space between words, so a text
    with other white space, or with unknown words, does not come back as it was. With `lower` capitals do not count.
    `cut="spaces"` takes all between two spaces for a word: "don't", "2:30", ":-)".

    >>> vocabulary = Words().fit("to be, or not to be")
    >>> vocabulary.encode("to sleep, or not"), vocabulary.decode([1, 0, 2, 5])
    (array([1, 5, 2, 4, 3]), 'to be, �')
    >>> vocabulary.encode(["not", "to", "be,"])                      # cut already
    array([3, 1, 5])
    """

    min_count: int = 1
    lower: bool = False
    cut: Literal["marks", "spaces"] = "marks"

    def validate(self) -> None:
        require(is_integer(self.min_count), self, "min_count", "a positive integer")
        require(isinstance(self.lower, bool), self, "lower", "True or False")
        require(self.cut in CUTS, self, "cut", '"marks" or "spaces"')

    def fit(self, texts: Any) -> WordVocabulary:
        """The words of a string, of a list of strings, or of a list of lists of words."""
        given = texts if is_cut(texts) else parts(texts)
        counts = Counter(word for text in given for word in _words(text, self.lower, self.cut))
        kept = [word for word, count in counts.items() if count >= self.min_count]
        if not kept:
            raise DataError(f"texts has no word that is there {self.min_count} times; use a smaller min_count.")
        return WordVocabulary(tuple(sorted(kept, key=lambda word: (-counts[word], word))), self.lower, self.cut)


@dataclass(frozen=True)
class WordVocabulary(Vocabulary):
    """Words by their numbers; the number after the last one is that of all other words."""

    kind: ClassVar[str] = "words"

    words: tuple[str, ...]
    lower: bool = False
    cut: str = "marks"

    @property
    def size(self) -> int:
        return len(self.words) + 1

    @property
    def unknown_token(self) -> int:
        return len(self.words)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, text: Text, name: str = "text") -> np.ndarray:
        known, other = self._numbers, len(self.words)
        return np.array([known.get(word, other) for word in _words(text, self.lower, self.cut)], np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        words = [*self.words, UNKNOWN]
        pieces: list[str] = []
        for number in self.checked(tokens).tolist():
            close = not pieces or words[number] in BEFORE or pieces[-1] in AFTER
            pieces += [words[number]] if close else [" ", words[number]]
        return "".join(pieces)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": self.kind, "words": list(self.words)}
        return data | ({"lower": True} if self.lower else {}) | ({"cut": self.cut} if self.cut != "marks" else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WordVocabulary:
        words, lower, cut = data.get("words"), data.get("lower", False), data.get("cut", "marks")
        whole = isinstance(words, list) and all(isinstance(word, str) and word for word in words)
        if not whole or not words or len(set(words)) != len(words):
            raise ModelFileError("The file has a vocabulary whose words are not different words.")
        if not isinstance(lower, bool) or cut not in CUTS:
            raise ModelFileError(f"The file has a vocabulary of words with lower={lower!r} and cut={cut!r}.")
        return cls(tuple(words), lower, cut)


def _words(text: Text, lower: bool, cut: str) -> Sequence[str]:
    """The words of a text, or those that it is given as."""
    if not isinstance(text, str):
        return [word.lower() for word in text] if lower else text
    text = text.lower() if lower else text
    return PIECES.findall(text) if cut == "marks" else text.split()
