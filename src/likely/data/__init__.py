"""Data in: tables and their encoding; rows of any length; graphs; augmentation. Each opens on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import augment
    from .graph import Graph
    from .read import read_table
    from .table import Table

__all__ = ["Graph", "Table", "augment", "read_table"]

_FILES = {"Graph": "graph", "Table": "table", "read_table": "read"}


def __getattr__(name: str) -> Any:
    """A name, on first use: rows alone need no library of tables."""
    if name == "augment":
        return importlib.import_module(".augment", __name__)
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_FILES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
