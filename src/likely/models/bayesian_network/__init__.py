"""Bayesian networks: directed graphs, Bayes ball, clique trees with absorption, the files that hold networks,
and the structures that are learned from data."""

from __future__ import annotations

from .bayes_ball import d_separated
from .bif import read_bif, write_bif
from .clique_tree import CliqueTree, clique_tree
from .dag import Dag
from .structure import PC, ChowLiu, HillClimbing, Structure, structural_hamming_distance

__all__ = [
    "PC",
    "ChowLiu",
    "CliqueTree",
    "Dag",
    "HillClimbing",
    "Structure",
    "clique_tree",
    "d_separated",
    "read_bif",
    "structural_hamming_distance",
    "write_bif",
]
