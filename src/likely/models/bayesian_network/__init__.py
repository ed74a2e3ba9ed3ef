"""Bayesian networks: directed graphs, Bayes ball, clique trees with absorption, and the files that hold networks."""

from __future__ import annotations

from .bayes_ball import d_separated
from .bif import read_bif, write_bif
from .clique_tree import CliqueTree, clique_tree
from .dag import Dag

__all__ = ["CliqueTree", "Dag", "clique_tree", "d_separated", "read_bif", "write_bif"]
