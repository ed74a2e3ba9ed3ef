"""Data in: tables, their encoding, and models of tables."""

from .frame_model import FrameModel
from .read import read_table
from .table import Table
from .table_model import TableModel

__all__ = ["FrameModel", "Table", "TableModel", "read_table"]
