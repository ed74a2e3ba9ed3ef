"""Hidden Markov models, and the recursions along sequences that they are made of."""

from __future__ import annotations

from .chain import chain_log_prob, sample_paths, sample_states
from .forward_backward import Smoothed, filter_states, forward_backward
from .viterbi import viterbi

__all__ = [
    "Smoothed",
    "chain_log_prob",
    "filter_states",
    "forward_backward",
    "sample_paths",
    "sample_states",
    "viterbi",
]
