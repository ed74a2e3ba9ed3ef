"""Data in: tables and their encoding; rows of any length; graphs; augmentation."""

from . import augment
from .graph import Graph
from .read import read_table
from .table import Table

__all__ = ["Graph", "Table", "augment", "read_table"]
