"""Data in: tables, their encoding, and models of tables."""

from .read import read_table
from .table import Table
from .table_model import TableModel

__all__ = ["Table", "TableModel", "read_table"]
