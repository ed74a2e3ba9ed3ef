"""Data in: tables and their encoding; rows of any length; graphs; text; augmentation. Each opens on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import augment, text
    from .graph import Graph
    from .read import read_table
    from .table import Table
    from .text import BPE, Bag, Characters, Forms, Words
    from .text_column import TextColumn

__all__ = [
    "BPE",
    "Bag",
    "Characters",
    "Forms",
    "Graph",
    "Table",
    "TextColumn",
    "Words",
    "augment",
    "read_table",
    "text",
]

_FILES = {
    "Graph": "graph",
    "Table": "table",
    "TextColumn": "text_column",
    "read_table": "read",
    **dict.fromkeys(("BPE", "Bag", "Characters", "Forms", "Words"), "text"),
}


def __getattr__(name: str) -> Any:
    """A name, on first use: rows alone need no library of tables."""
    if name in ("augment", "text"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
