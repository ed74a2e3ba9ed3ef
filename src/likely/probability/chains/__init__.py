"""Sums and maxima over all paths of a chain: what hidden Markov models and conditional random fields share."""

from __future__ import annotations

from .chain import chain_log_prob, filter_scores, sample_paths, sample_states, smooth_scores
from .forward_backward import Smoothed, filter_states, forward_backward
from .label_paths import LabelPaths
from .labels import label_log_prob
from .viterbi import best_paths, best_paths_backwards, viterbi

__all__ = [
    "LabelPaths",
    "Smoothed",
    "best_paths",
    "best_paths_backwards",
    "chain_log_prob",
    "filter_scores",
    "filter_states",
    "forward_backward",
    "label_log_prob",
    "sample_paths",
    "sample_states",
    "smooth_scores",
    "viterbi",
]
