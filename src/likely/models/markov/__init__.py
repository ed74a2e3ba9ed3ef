"""Hidden Markov models, and the recursions along sequences that they are made of."""

from __future__ import annotations

from ...probability.chains import (
    Smoothed,
    chain_log_prob,
    filter_states,
    forward_backward,
    sample_paths,
    sample_states,
    viterbi,
)

__all__ = [
    "Smoothed",
    "chain_log_prob",
    "filter_states",
    "forward_backward",
    "sample_paths",
    "sample_states",
    "viterbi",
]
