"""A text as a bag: which words it has, and which pairs of words that follow one another. Their order is forgotten.

    x_j = 1/√m  for each of the m different words and pairs j that a text has,      0 for all others

Rows are sparse and of length 1, so that what a linear model makes of a text does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ...core.errors import DataError, ModelFileError
from ...core.spec import Spec, as_spec, is_integer, require
from ..sparse_rows import SparseRows
from .base import Text, Tokens, Vocabulary, vocabulary_from_json
from .words import Words

__all__ = ["Bag", "BagVocabulary", "Encoder"]


class Encoder(Spec, axis="encoder"):
    """How texts become the rows of a network, where that is not their tokens one after the other.

    >>> Encoder.parse("bag(min_count=2)")
    Bag(min_count=2)
    """

    def fit(self, texts: Sequence[Text]) -> Any:
        """What was learned of texts: it has `rows(texts)` and goes to JSON."""
        raise NotImplementedError(f"{type(self).__name__} must learn from texts")


class Bag(Encoder):
    """The tokens of a text, and `pairs` of tokens, that `min_count` training texts or more have; others do not count.

    >>> vocabulary = Bag().fit(["not bad", "bad , bad"])
    >>> vocabulary.names
    ['bad', ',', 'not', 'bad ,', ', bad', 'not bad']
    >>> vocabulary.rows(["Not so bad!"]).dense()
    tensor([[0.7071, 0.0000, 0.7071, 0.0000, 0.0000, 0.0000]], dtype=torch.float64)
    """

    tokens: Tokens = Words(lower=True)
    pairs: bool = True
    min_count: int = 1

    def validate(self) -> None:
        object.__setattr__(self, "tokens", as_spec(self.tokens, Tokens, "tokens"))
        require(isinstance(self.pairs, bool), self, "pairs", "True or False")
        require(is_integer(self.min_count), self, "min_count", "a positive integer")

    def fit(self, texts: Sequence[Text]) -> BagVocabulary:
        """The words and pairs of texts."""
        vocabulary = self.tokens.fit([text for text in texts if len(text)])
        codes, _ = _codes(vocabulary, texts, self.pairs, "texts")
        known, counts = np.unique(codes, return_counts=True)
        kept = known[counts >= self.min_count]
        if not len(kept):
            raise DataError(f"No word is in {self.min_count} texts or more; use a smaller min_count.")
        return BagVocabulary(vocabulary, self.pairs, tuple(kept.tolist()))


@dataclass(frozen=True)
class BagVocabulary:
    """The columns of a bag by their codes: a token t is t, a pair (s, t) of V tokens is V + V s + t.

    >>> Bag().fit(["so warm", "so dull"]).codes                      # so, dull, warm, and two pairs of 4 tokens
    (0, 1, 2, 5, 6)
    """

    tokens: Vocabulary
    pairs: bool
    codes: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many columns there are."""
        return len(self.codes)

    @cached_property
    def _codes(self) -> np.ndarray:
        return np.array(self.codes, np.int64)

    @property
    def names(self) -> list[str]:
        """What each column stands for."""
        size, alone = self.tokens.size, [self.tokens.decode([token]) for token in range(self.tokens.size)]
        return [
            alone[code] if code < size else f"{alone[code // size - 1]} {alone[code % size]}" for code in self.codes
        ]

    @property
    def kinds(self) -> tuple[int, ...]:
        """How many columns are tokens, and how many are pairs."""
        alone = int(np.searchsorted(self._codes, self.tokens.size))
        return tuple(count for count in (alone, self.size - alone) if count)

    def rows(self, texts: Sequence[Text], name: str = "X") -> SparseRows:
        """Texts as sparse rows; one of which nothing is known is 0 throughout."""
        codes, owner = _codes(self.tokens, texts, self.pairs, name)
        places = np.minimum(np.searchsorted(self._codes, codes), self.size - 1)
        known = self._codes[places] == codes
        lengths = np.bincount(owner[known], minlength=len(texts))
        values = np.repeat(np.maximum(lengths, 1) ** -0.5, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        columns = torch.from_numpy(places[known])
        return SparseRows(torch.from_numpy(values), columns, torch.from_numpy(offsets), self.size)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "bag", "tokens": self.tokens.to_json(), "pairs": self.pairs, "codes": list(self.codes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BagVocabulary:
        """The inverse of `to_json`; a `ModelFileError` for what no `fit` gives."""
        tokens, pairs, codes = vocabulary_from_json(data.get("tokens")), data.get("pairs"), data.get("codes")
        if not isinstance(pairs, bool) or not isinstance(codes, list) or not all(type(code) is int for code in codes):
            raise ModelFileError("The file has a bag of words without a list of its columns.")
        rising = all(one < other for one, other in pairwise(codes))
        if not codes or not rising or not 0 <= codes[0] <= codes[-1] < tokens.size * (tokens.size + 1):
            raise ModelFileError("The file has a bag of words whose columns are not different ones in order.")
        return cls(tokens, pairs, tuple(codes))


def _codes(vocabulary: Vocabulary, texts: Sequence[Text], pairs: bool, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The codes of what each text has, each once and in order, and the text that they belong to."""
    rows = vocabulary.rows(texts, name)
    tokens, owner = rows.features.numpy(), rows.owner.numpy()
    known = tokens < vocabulary.size
    size = vocabulary.size
    codes, owners = [tokens[known]], [owner[known]]
    if pairs:
        within = (owner[1:] == owner[:-1]) & known[1:]
        codes.append((size + size * tokens[:-1] + tokens[1:])[within])
        owners.append(owner[1:][within])
    code, own = np.concatenate(codes), np.concatenate(owners)
    order = np.lexsort((code, own))
    code, own = code[order], own[order]
    first = np.ones(len(code), bool)
    first[1:] = (code[1:] != code[:-1]) | (own[1:] != own[:-1])
    return code[first], own[first]
