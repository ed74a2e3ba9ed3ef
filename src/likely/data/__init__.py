"""Data in: tables and their encoding; rows of any length; graphs; images; text; augmentation; opened on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import augment, text
    from .boxes import Boxes, read_boxes, read_coco, read_voc
    from .formula import Formula
    from .graph import Graph
    from .images import Images, read_image, read_images, read_mask, read_masks, write_image
    from .masks import boundary_weights
    from .read import read_table
    from .table import Table
    from .text import BPE, Bag, Characters, Forms, Words
    from .text_column import TextColumn

__all__ = [
    "BPE",
    "Bag",
    "Boxes",
    "Characters",
    "Forms",
    "Formula",
    "Graph",
    "Images",
    "Table",
    "TextColumn",
    "Words",
    "augment",
    "boundary_weights",
    "read_boxes",
    "read_coco",
    "read_image",
    "read_images",
    "read_mask",
    "read_masks",
    "read_table",
    "read_voc",
    "text",
    "write_image",
]

_FILES = {
    "Formula": "formula",
    "Graph": "graph",
    "Table": "table",
    "TextColumn": "text_column",
    "boundary_weights": "masks",
    "read_table": "read",
    **dict.fromkeys(("Boxes", "read_boxes", "read_coco", "read_voc"), "boxes"),
    **dict.fromkeys(("Images", "read_image", "read_images", "read_mask", "read_masks", "write_image"), "images"),
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
