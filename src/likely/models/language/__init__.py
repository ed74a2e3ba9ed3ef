"""Language models: distributions of text, token by token."""

from __future__ import annotations

from .blend import Blend
from .ngram import NGram

__all__ = ["Blend", "NGram"]
