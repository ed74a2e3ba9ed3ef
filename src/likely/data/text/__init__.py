"""Text at the door: strings in, token numbers out, and back. A spec says how to cut; `fit` learns the vocabulary."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Tokens, Vocabulary, as_texts, vocabulary_from_json
    from .byte_pairs import BPE
    from .characters import Characters
    from .words import Words

__all__ = ["BPE", "Characters", "Tokens", "Vocabulary", "Words", "as_texts", "vocabulary_from_json"]

_FILES = {
    "BPE": "byte_pairs",
    "Characters": "characters",
    "Words": "words",
    **dict.fromkeys(("Tokens", "Vocabulary", "as_texts", "vocabulary_from_json"), "base"),
}


def __getattr__(name: str) -> Any:
    """A name, on first use."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
