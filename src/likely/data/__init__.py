"""Data in: tables, their encoding, models of tables; graphs; augmentation."""

from ..core.graph import Graph
from . import augment
from .frame_model import FrameModel
from .read import read_table
from .table import Table
from .table_model import TableModel

__all__ = ["FrameModel", "Graph", "Table", "TableModel", "augment", "read_table"]
