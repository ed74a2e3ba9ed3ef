"""The log-bilinear softmax: the probability of a neighbour given a word, normalised over the whole vocabulary.

    log p(c | w) = v_w · u_c − log Σ_j exp(v_w · u_j),      ∂/∂ v_w = Σ_c n_wc (u_c − E[u | w])

All that a text says of it are the counts n_wc of pairs, so that its gradient is exact: matrix products over some words
and the whole vocabulary at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from .co_occurrence import Pairs

__all__ = ["softmax_loss_and_grad", "train_softmax"]

WORDS = 256
"""Rows of the table of counts in one step."""
START = 0.1
"""The length of a vector at first: a step of Adam moves each number by the rate, and few must outweigh the start."""
DECAY, SQUARES, TINY = 0.9, 0.999, 1e-8
"""Adam's."""


def train_softmax(
    pairs: Pairs, size: int, *, width: int, epochs: int, rate: float, seed: int, report: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors v and u, (V, width) each; `report` is told the mean −log p of a pair after every epoch."""
    rng = np.random.default_rng(seed)
    counts = sparse.csr_array((pairs.counts, (pairs.words, pairs.neighbours)), shape=(size, size))
    total = float(pairs.counts.sum())
    vectors = (START * rng.normal(size=(size, width)) / np.sqrt(width)).astype(np.float32)
    contexts = np.zeros((size, width), np.float32)
    moments = [np.zeros((2, size, width), np.float32) for _ in range(2)]
    steps = -(-size // WORDS) * epochs
    at = 0
    for _ in range(epochs):
        loss = 0.0
        for some in np.array_split(rng.permutation(size), -(-size // WORDS)):
            value, to_vectors, to_contexts = softmax_loss_and_grad(vectors[some], contexts, counts[some].toarray())
            loss += value
            at += 1
            size_of_step = rate * (1 - (at - 1) / steps)
            scale = size / (len(some) * total)
            _adam(vectors, moments[0], to_vectors * scale, size_of_step, at, some)
            _adam(contexts, moments[1], to_contexts * scale, size_of_step, at, slice(None))
        report(loss / total)
    return vectors, contexts


def softmax_loss_and_grad(
    vectors: np.ndarray, contexts: np.ndarray, counts: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """−Σ n_wc log p(c | w) of some words, and its gradients: v is (b, d), u (V, d), the counts (b, V).

    >>> loss, to_vectors, _ = softmax_loss_and_grad(np.zeros((1, 2)), np.eye(2), np.array([[1.0, 0.0]]))
    >>> round(loss, 4), to_vectors.tolist()
    (0.6931, [[-0.5, 0.5]])
    """
    scores = vectors @ contexts.T
    log_chance = scores - logsumexp(scores, axis=1, keepdims=True)
    excess = (counts.sum(1, keepdims=True) * np.exp(log_chance) - counts).astype(vectors.dtype)
    return -float((counts * log_chance).sum()), excess @ contexts, excess.T @ vectors


def _adam(
    values: np.ndarray, moments: np.ndarray, gradient: np.ndarray, rate: float, at: int, rows: np.ndarray | slice
) -> None:
    """A step on some rows, whose moments are all that changes."""
    mean, square = moments[0], moments[1]
    mean[rows] += (1 - DECAY) * (gradient - mean[rows])
    square[rows] += (1 - SQUARES) * (gradient**2 - square[rows])
    unbiased = rate / (1 - DECAY**at) * np.sqrt(1 - SQUARES**at)
    values[rows] -= unbiased * mean[rows] / (np.sqrt(square[rows]) + TINY)
