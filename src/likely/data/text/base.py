"""What tokens are: a spec that says how text is cut, and the vocabulary that `fit` learns from texts.

encode: text → token numbers 0 … size − 1,      decode: back
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.errors import DataError, ModelFileError
from ...core.spec import Spec, _short
from ..rows import Ragged, Rows
from .files import StoredTexts, parts_of, read_texts

__all__ = ["Text", "Tokens", "Vocabulary", "as_texts", "is_cut", "parts", "vocabulary_from_json"]

Text = str | Sequence[str]
"""A text as it is, or as the list of its words."""


class Tokens(Spec, axis="tokens"):
    """How text is cut into tokens; `fit(texts)` learns which there are."""

    def fit(self, texts: Any) -> Vocabulary:
        """The vocabulary of a string, or of a list of strings."""
        raise NotImplementedError(f"{type(self).__name__} must learn its vocabulary")


class Vocabulary(ABC):
    """A learned vocabulary: a value that goes to JSON and back."""

    kind: ClassVar[str]
    """Its name in files."""
    kinds: ClassVar[dict[str, type[Vocabulary]]] = {}

    def __init_subclass__(cls) -> None:
        Vocabulary.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tokens there are."""

    @property
    def unknown_token(self) -> int | None:
        """The token that stands for all that the vocabulary does not know; None where there is none."""
        return None

    @abstractmethod
    def encode(self, text: str, name: str = "text") -> np.ndarray:
        """The token numbers of a text, (t,) of int64; `name` is what an error calls it."""

    def rows(self, texts: Sequence[Text], name: str = "X") -> Rows:
        """Texts as the rows of a network: sequences of token numbers; one without tokens is the number `size` alone."""
        coded = []
        for place, text in enumerate(texts):
            if not isinstance(text, str) and self.kind != "words":
                raise DataError(f"{name}[{place}] is a list of words, which are the tokens of Words(), not of these.")
            tokens = self.encode(text, f"{name}[{place}]")  # type: ignore[arg-type]
            coded.append(tokens if len(tokens) else np.array([self.size]))
        offsets = np.cumsum([0, *(len(tokens) for tokens in coded)])
        return Ragged.from_numpy(np.concatenate(coded), offsets)

    @property
    def symbols(self) -> int:
        """Numbers that a network of its rows reads: the tokens, and the one that says that there are none."""
        return self.size + 1

    @abstractmethod
    def decode(self, tokens: Iterable[int]) -> str:
        """The text of token numbers."""

    def split(self, text: str) -> list[str]:
        """The text of each of its tokens."""
        return [self.decode([token]) for token in self.encode(text).tolist()]

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data, with the `kind` under its name."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: Mapping[str, Any]) -> Vocabulary:
        """The inverse of `to_json`; a `ModelFileError` for what no `fit` gives."""

    def checked(self, tokens: Iterable[int]) -> np.ndarray:
        """Token numbers as an array; a `DataError` for those that are none of this vocabulary."""
        numbers = np.asarray(tokens if isinstance(tokens, np.ndarray) else list(tokens))
        if numbers.size == 0:
            return np.zeros(0, np.int64)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise DataError(f"tokens must be integers, one after the other; found {_short(numbers)}.")
        if numbers.min() < 0 or numbers.max() >= self.size:
            bad = numbers[(numbers < 0) | (numbers >= self.size)][0]
            raise DataError(f"tokens has {bad}; the tokens of this vocabulary are 0 … {self.size - 1}.")
        return numbers.astype(np.int64)


def as_texts(texts: Any, name: str = "texts", *, empty: bool = False) -> Sequence[str]:
    """A string, or a list of strings, as a list; an `empty` text is refused unless it is allowed.

    A path (`pathlib.Path`) is that of a file with one text, or of a folder of .txt files: they are read when asked for.

    >>> as_texts("to be"), as_texts(["to be", "or not"])
    (['to be'], ['to be', 'or not'])
    >>> as_texts(["to be", 3])
    Traceback (most recent call last):
    likely.core.errors.DataError: texts[1] is 3, an int; it must be a string.
    """
    if isinstance(texts, os.PathLike):
        texts = read_texts(texts)
    if isinstance(texts, StoredTexts):
        return texts
    if isinstance(texts, str):
        texts = [texts]
    elif isinstance(texts, bytes | Mapping) or not hasattr(texts, "__iter__") or getattr(texts, "ndim", 1) != 1:
        raise DataError(f"{name} must be a string or a list of strings; found {_short(texts)}.")
    given = list(texts)
    if not given:
        raise DataError(f"{name} is an empty list: there is no text in it.")
    for place, text in enumerate(given):
        if not isinstance(text, str):
            kind = type(text).__name__
            article = "an" if kind[0] in "aeiou" else "a"
            raise DataError(f"{name}[{place}] is {_short(text)}, {article} {kind}; it must be a string.")
        if not text and not empty:
            raise DataError(f"{name}[{place}] is empty: it has no characters; leave it out.")
    return [str(text) for text in given]


def parts(texts: Any) -> Iterator[str]:
    """A string, a list of strings, or texts in files, in parts that no token goes across: what a vocabulary counts.

    >>> list(parts(["to be", "or not"]))
    ['to be', 'or not']
    """
    given = as_texts(texts)
    return (part for place in range(len(given)) for part in parts_of(given, place))


def is_cut(texts: Any) -> bool:
    """Whether texts come as lists of their words.

    >>> is_cut([["to", "be"], ["or"]]), is_cut(["to be"])
    (True, False)
    """
    if isinstance(texts, str | StoredTexts) or not isinstance(texts, Sequence):
        return False
    first = next((text for text in texts if isinstance(text, str) or len(text)), "")
    return not isinstance(first, str)


def vocabulary_from_json(data: Any) -> Vocabulary:
    """The vocabulary that `to_json` wrote.

    >>> from likely.data.text import Characters
    >>> vocabulary_from_json(Characters().fit("abba").to_json()).encode("ab")
    array([0, 1])
    """
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in Vocabulary.kinds:
        raise ModelFileError(
            f"The file has a vocabulary of the kind {_short(kind)}; known: {', '.join(Vocabulary.kinds)}."
        )
    restored = Vocabulary.kinds[kind].from_json(data)
    if restored.to_json() != data:
        raise ModelFileError(f"The file has a vocabulary of {kind} that no fit gives.")
    return restored
