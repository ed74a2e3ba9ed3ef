"""Text at the door: strings in, token numbers out, and back. A spec says how to cut; `fit` learns the vocabulary."""

from __future__ import annotations

from .base import Tokens, Vocabulary, as_texts, vocabulary_from_json
from .byte_pairs import BPE
from .characters import Characters
from .words import Words

__all__ = ["BPE", "Characters", "Tokens", "Vocabulary", "Words", "as_texts", "vocabulary_from_json"]
