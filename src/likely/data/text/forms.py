"""Words by their forms: the word itself, its shape, how it begins and how it ends. An unknown word has known forms.

    "Obama's"  →  obama's · Aa'a · o ob oba · s 's a's ma's

A network over steps reads the numbers of all forms of a word at once: their vectors add up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.errors import DataError, ModelFileError
from ...core.spec import is_integer, require
from ..rows import Ragged
from .bag import Encoder
from .base import Text

__all__ = ["FormVocabulary", "Forms"]

BEGINS, ENDS = (1, 2, 3), (1, 2, 3, 4)
"""Letters of the beginnings and of the ends that count."""


class Forms(Encoder):
    """The forms of each word (of a list of words, or of a text cut at spaces) that are there `min_count` times or more.

    >>> vocabulary = Forms(min_count=1).fit(["Ann sees Bob"])
    >>> vocabulary.rows(["Bob sees Zoe"]).values[:, :2]          # the word, and its shape: Zoe is unknown, Aaa is not
    tensor([[22, 19],
            [23, 20],
            [24, 19]])
    """

    min_count: int = 2

    def validate(self) -> None:
        require(is_integer(self.min_count), self, "min_count", "a positive integer")

    def fit(self, texts: Sequence[Text]) -> FormVocabulary:
        """The forms of the words of texts."""
        counts = Counter(form for text in texts for word in _words(text) for form in set(_forms(word)))
        kept = sorted(form for form, count in counts.items() if count >= self.min_count)
        if not kept:
            raise DataError(f"No form of a word is there {self.min_count} times; use a smaller min_count.")
        return FormVocabulary(tuple(kept))


@dataclass(frozen=True)
class FormVocabulary:
    """Forms by their numbers; the number after the last one is that of all others, and of a text without words.

    >>> Forms(min_count=1).fit(["so"]).forms
    ('bs', 'bso', 'eo', 'eso', 'saa', 'wso')
    """

    forms: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many forms there are."""
        return len(self.forms)

    @property
    def symbols(self) -> int:
        """Numbers that a network of its rows reads."""
        return self.size + 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {form: number for number, form in enumerate(self.forms)}

    def rows(self, texts: Sequence[Text], name: str = "X") -> Ragged:
        """Texts as sequences of words, each by the numbers of its forms: (words, forms)."""
        known, other = self._numbers, self.size
        cut = [_words(text) for text in texts]
        coded = [[known.get(form, other) for form in _forms(word)] for words in cut for word in words or ("",)]
        offsets = np.cumsum([0, *(max(1, len(words)) for words in cut)])
        return Ragged.from_numpy(np.array(coded, np.int64), offsets)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "forms", "forms": list(self.forms)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FormVocabulary:
        """The inverse of `to_json`; a `ModelFileError` for what no `fit` gives."""
        forms = data.get("forms")
        listed = isinstance(forms, list) and all(isinstance(form, str) for form in forms)
        if not isinstance(forms, list) or not listed or not forms or sorted(set(forms)) != forms:
            raise ModelFileError("The file has a vocabulary whose forms are not different ones in order.")
        return cls(tuple(forms))


def _words(text: Text) -> Sequence[str]:
    return text.split() if isinstance(text, str) else text


def _forms(word: str) -> list[str]:
    """As many for every word: the word in small letters, its shape, its beginnings and its ends."""
    small = word.lower()
    shape = re.sub("[0-9]", "0", re.sub("[a-zß-ÿ]", "a", re.sub("[A-ZÀ-Þ]", "A", word)))
    shape = re.sub(r"(.)\1{2,}", r"\1\1", shape)
    begins, ends = ([f"{mark}{part}" for part in parts] for mark, parts in _parts(small))
    return [f"w{small}", f"s{shape}", *begins, *ends]


def _parts(word: str) -> list[tuple[str, list[str]]]:
    return [("b", [word[:count] for count in BEGINS]), ("e", [word[-count:] for count in ENDS])]
