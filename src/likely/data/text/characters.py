"""Characters as tokens: every character (Unicode code point) of the training texts is one, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.errors import DataError, ModelFileError
from ...core.spec import require
from .base import Tokens, Vocabulary, parts

__all__ = ["CharacterVocabulary", "Characters"]

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""What the token of all unknown characters is decoded as."""


class Characters(Tokens):
    """One token for each character that the training texts have.

    A character that none of them has is refused by name: no model could say how probable it is. With `unknown=True`
    one more token, the last, stands for all of these, and is decoded as �.

    >>> vocabulary = Characters().fit("hello")
    >>> vocabulary.encode("hole"), vocabulary.decode([1, 3, 2, 0])
    (array([1, 3, 2, 0]), 'hole')
    """

    unknown: bool = False

    def validate(self) -> None:
        require(isinstance(self.unknown, bool), self, "unknown", "True or False")

    def fit(self, texts: Any) -> CharacterVocabulary:
        """The characters of a string, or of a list of strings."""
        points = sorted({ord(character) for text in parts(texts) for character in set(text)})
        return CharacterVocabulary(tuple(points), self.unknown)


@dataclass(frozen=True)
class CharacterVocabulary(Vocabulary):
    """Code points in their order; `decode(encode(text))` is the text, but for unknown characters."""

    kind: ClassVar[str] = "characters"

    points: tuple[int, ...]
    unknown: bool = False

    @property
    def size(self) -> int:
        return len(self.points) + self.unknown

    @property
    def unknown_token(self) -> int | None:
        return len(self.points) if self.unknown else None

    @cached_property
    def _known(self) -> np.ndarray:
        return np.array(self.points, np.uint32)

    def encode(self, text: str, name: str = "text") -> np.ndarray:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        tokens = np.searchsorted(self._known, points).astype(np.int64)
        strange = self._known[np.minimum(tokens, len(self._known) - 1)] != points
        if strange.any():
            if not self.unknown:
                place = int(np.flatnonzero(strange)[0])
                raise DataError(
                    f"{name} has the character {text[place]!r} at position {place}, which no training text has; fit to "
                    "texts that have it, or use Characters(unknown=True), or BPE(), which knows every text."
                )
            tokens[strange] = len(self.points)
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        points = np.append(self._known, ord(UNKNOWN)).astype(np.uint32)[self.checked(tokens)]
        return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "points": list(self.points), "unknown": self.unknown}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CharacterVocabulary:
        points, unknown = data.get("points"), data.get("unknown")
        listed = isinstance(points, list) and all(type(point) is int and 0 <= point < 0x110000 for point in points)
        if not listed or not points or sorted(set(points)) != points or not isinstance(unknown, bool):
            raise ModelFileError("The file has a vocabulary whose points are not different characters in their order.")
        return cls(tuple(points), unknown)
