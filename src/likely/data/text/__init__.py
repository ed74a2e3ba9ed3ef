"""Text at the door: strings in, token numbers out, and back. A spec says how to cut; `fit` learns the vocabulary."""

from __future__ import annotations

from .bag import Bag, BagVocabulary, Encoder
from .base import Text, Tokens, Vocabulary, as_texts, is_cut, vocabulary_from_json
from .byte_pairs import BPE
from .characters import Characters
from .files import StoredTexts, parts_of, read_folder, read_text, read_texts
from .forms import Forms, FormVocabulary
from .words import Words

__all__ = [
    "BPE",
    "Bag",
    "BagVocabulary",
    "Characters",
    "Encoder",
    "FormVocabulary",
    "Forms",
    "StoredTexts",
    "Text",
    "Tokens",
    "Vocabulary",
    "Words",
    "as_texts",
    "is_cut",
    "parts_of",
    "read_folder",
    "read_text",
    "read_texts",
    "vocabulary_from_json",
]
