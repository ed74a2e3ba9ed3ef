"""Language models: distributions of text, token by token."""

from __future__ import annotations

from .ngram import NGram

__all__ = ["NGram"]
