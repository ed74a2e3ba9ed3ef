"""Byte pairs as tokens: the 256 bytes, and the most frequent pair of tokens merged into a new one, again and again.

    tokens 0 … 255 are the bytes of UTF-8,      token 256 + i is the i-th merge

Every text has tokens, and comes back from them as it was. Hugging Face's `tokenizers` counts and merges.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...core.errors import ModelFileError
from ...core.spec import is_integer, require
from .base import Tokens, Vocabulary, parts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["BPE", "BytePairVocabulary"]

BYTES = 256
LONGEST = 256
"""Bytes of a token, at most; merges that a file doubles again and again would fill the memory."""
MOST = 1_000_000
"""Tokens, at most."""
SPACE, LETTERS = " \t\n\r\x0b\x0c", "A-Za-z\x80-\xff"
PIECES = f"'(?:[sdmt]|ll|ve|re)| ?[{LETTERS}]+| ?[0-9]+| ?[^{SPACE}{LETTERS}0-9]+|[{SPACE}]+(?![^{SPACE}])|[{SPACE}]+"
"""What merges stay within: a word with the space before it, digits, marks, white space; of bytes read as Latin-1."""


class BPE(Tokens):
    """Byte-level byte-pair encoding with a vocabulary of `size`: the 256 bytes and size − 256 merges.

    Merges do not cross words, and none is made of a pair that is there only once, so small texts have fewer. Any text
    has tokens: emoji, NUL and lone surrogates included, and `decode(encode(text))` is the text.

    >>> vocabulary = BPE(259).fit("aaabdaaabac")
    >>> vocabulary.encode("aaabdaaabac"), vocabulary.merges
    (array([258, 100, 258,  97,  99]), ((97, 97), (97, 98), (256, 257)))
    >>> vocabulary.decode(vocabulary.encode("naïve 🎲"))
    'naïve 🎲'
    """

    size: int = 1024

    def validate(self) -> None:
        known = is_integer(self.size) and BYTES <= self.size <= MOST
        require(known, self, "size", f"an integer from {BYTES}, the number of bytes, to {MOST:,}")

    def fit(self, texts: Any) -> BytePairVocabulary:
        """The merges of a string, or of a list of strings."""
        from tokenizers import Tokenizer, models, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = _pieces()
        trainer = trainers.BpeTrainer(
            vocab_size=self.size,
            min_frequency=2,
            show_progress=False,
            special_tokens=[],
            initial_alphabet=[chr(byte) for byte in range(BYTES)],
            max_token_length=LONGEST,
        )
        tokenizer.train_from_iterator((_latin(text) for text in parts(texts)), trainer)
        return BytePairVocabulary(_numbered(json.loads(tokenizer.to_str())["model"]["merges"]))


@dataclass(frozen=True)
class BytePairVocabulary(Vocabulary):
    """Merges of two tokens by their numbers, in the order in which they are made."""

    kind: ClassVar[str] = "byte_pairs"

    merges: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        return BYTES + len(self.merges)

    @cached_property
    def _pieces(self) -> list[bytes]:
        """The bytes of each token."""
        pieces = [bytes([byte]) for byte in range(BYTES)]
        for left, right in self.merges:
            pieces.append(pieces[left] + pieces[right])
        return pieces

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer, models

        names = [piece.decode("latin-1") for piece in self._pieces]
        pairs = [(names[left], names[right]) for left, right in self.merges]
        tokenizer = Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, pairs))
        tokenizer.pre_tokenizer = _pieces()
        return tokenizer

    def encode(self, text: str, name: str = "text") -> np.ndarray:
        return np.array(self._tokenizer.encode_batch_fast([_latin(text)])[0].ids, np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        pieces = self._pieces
        whole = b"".join([pieces[number] for number in self.checked(tokens).tolist()])
        try:
            return whole.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # tokens that a model drew may end in the midst of a character
            return whole.decode("utf-8", "replace")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "merges": [list(pair) for pair in self.merges]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BytePairVocabulary:
        merges = data.get("merges")
        if not isinstance(merges, list) or len(merges) > MOST:
            raise ModelFileError("The file has a vocabulary of byte pairs without a list of merges.")
        lengths = [1] * BYTES
        for number, pair in enumerate(merges):
            integers = isinstance(pair, list) and len(pair) == 2 and all(type(own) is int for own in pair)
            if not integers or not all(0 <= own < BYTES + number for own in pair):
                raise ModelFileError(f"The file has a merge {number} that is not of two tokens made before it.")
            lengths.append(lengths[pair[0]] + lengths[pair[1]])
            if lengths[-1] > LONGEST:
                raise ModelFileError(f"The file has a token of {lengths[-1]} bytes; they have {LONGEST} or fewer.")
        restored = cls(tuple((left, right) for left, right in merges))
        if len(set(restored._pieces)) < restored.size:
            raise ModelFileError("The file has two merges that make the same token.")
        return restored


def _pieces() -> Any:
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(PIECES), "isolated")


def _latin(text: str) -> str:
    """The bytes of a text, each as the character of its number."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _numbered(merges: Iterable[tuple[str, str]]) -> tuple[tuple[int, int], ...]:
    """Merges by number; the second of two that make the same token adds none, and is left out."""
    numbers = {chr(byte): byte for byte in range(BYTES)}
    pairs: list[tuple[int, int]] = []
    for left, right in merges:
        if left + right not in numbers:
            numbers[left + right] = BYTES + len(pairs)
            pairs.append((numbers[left], numbers[right]))
    return tuple(pairs)
