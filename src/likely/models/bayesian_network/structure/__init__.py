"""Structure learning: the directed graph of a Bayesian network from rows of data."""

from __future__ import annotations

from .base import Structure
from .chow_liu import ChowLiu
from .equivalence import structural_hamming_distance
from .hill_climbing import HillClimbing
from .pc import PC

__all__ = ["PC", "ChowLiu", "HillClimbing", "Structure", "structural_hamming_distance"]
