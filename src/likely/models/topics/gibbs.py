"""Collapsed Gibbs sampling of latent Dirichlet allocation: each token's topic is drawn given all others, compiled.

    p(z_i = k | z_−i, w)  ∝  (n_dk + α_k) (n_kw + β) / (n_k + Vβ)        (counts without token i)

The weights of all topics are formed at once on the lanes of the processor; the draw adds them lane by lane, which is
one serial step for each lane and each block of topics instead of one for each topic.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .digamma import digamma
from .lanes import FAST, LANES

__all__ = ["log_joint", "prior_of_counts", "sweep"]

# SplitMix64: a counter in golden steps, mixed by two multiplications
GOLDEN, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S40 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(40)


@njit(**FAST)
def sweep(
    starts: np.ndarray,  # (n + 1,) where each document begins in words
    words: np.ndarray,  # (tokens,)
    topics: np.ndarray,  # (tokens,) their topics, −1 before the first sweep; overwritten
    word_topic: np.ndarray,  # (V, K padded) int32 counts, kept in step
    topic: np.ndarray,  # (K padded) int64 counts, kept in step
    prior: np.ndarray,  # (K padded with 0) α
    smooth: float,  # β
    size: int,  # K
    state: np.ndarray,  # (1,) uint64, the state of the generator
) -> None:
    """Draw the topic of every token once, document by document.

    A token without a topic is not counted yet, so that the first sweep is the sequential draw from an empty start.
    """
    width = word_topic.shape[1]
    mass = np.float32(smooth * word_topic.shape[0])
    beta, zero, one = np.float32(smooth), np.float32(0.0), np.float32(1.0)
    inverse = np.empty(width, np.float32)
    alpha = prior.astype(np.float32)
    for k in range(width):
        inverse[k] = one / (np.float32(topic[k]) + mass)
    factor = np.empty(width, np.float32)  # (n_dk + α_k) / (n_k + Vβ)
    inside = np.empty(width, np.float32)  # n_dk + α_k
    weight = np.empty(width, np.float32)
    lanes = np.empty(LANES, np.float32)
    random = state[0]
    for document in range(starts.shape[0] - 1):
        start, stop = starts[document], starts[document + 1]
        inside[:] = alpha
        for token in range(start, stop):
            if topics[token] >= 0:
                inside[topics[token]] += one
        for k in range(width):
            factor[k] = inside[k] * inverse[k]
        for token in range(start, stop):
            row = word_topic[words[token]]
            old = topics[token]
            if old >= 0:
                row[old] -= 1
                topic[old] -= 1
                inside[old] -= one
                inverse[old] = one / (np.float32(topic[old]) + mass)
                factor[old] = inside[old] * inverse[old]
            for lane in range(LANES):
                lanes[lane] = zero
            for block in range(0, width, LANES):
                for lane in range(LANES):
                    value = factor[block + lane] * (np.float32(row[block + lane]) + beta)
                    weight[block + lane] = value
                    lanes[lane] += value
            total = zero
            for lane in range(LANES):
                total += lanes[lane]
            random += GOLDEN
            bits = (random ^ (random >> S30)) * FIRST
            bits = (bits ^ (bits >> S27)) * SECOND
            bits = bits ^ (bits >> S31)
            rest = np.float32(bits >> S40) * np.float32(2.0**-24) * total
            chosen = 0
            while chosen < LANES - 1 and rest >= lanes[chosen]:
                rest -= lanes[chosen]
                chosen += 1
            while chosen + LANES < size and rest >= weight[chosen]:
                rest -= weight[chosen]
                chosen += LANES
            new = min(chosen, size - 1)  # rounding may leave a rest behind the last lane
            topics[token] = new
            row[new] += 1
            topic[new] += 1
            inside[new] += one
            inverse[new] = one / (np.float32(topic[new]) + mass)
            factor[new] = inside[new] * inverse[new]
    state[0] = random


@njit(**FAST)
def log_joint(
    starts: np.ndarray,
    topics: np.ndarray,
    word_topic: np.ndarray,
    topic: np.ndarray,
    prior: np.ndarray,
    smooth: float,
    size: int,
) -> float:
    """log p(w, z | α, β), with θ and φ integrated out: ratios of Γ at the counts that are not zero."""
    inside = np.empty(size, np.int64)
    mass = 0.0
    for k in range(size):
        mass += prior[k]
    value = 0.0
    for document in range(starts.shape[0] - 1):
        length = starts[document + 1] - starts[document]
        inside[:] = 0
        for token in range(starts[document], starts[document + 1]):
            inside[topics[token]] += 1
        value += math.lgamma(mass) - math.lgamma(mass + length)
        for k in range(size):
            if inside[k] > 0:
                value += math.lgamma(prior[k] + inside[k]) - math.lgamma(prior[k])
    whole = smooth * word_topic.shape[0]
    level = math.lgamma(smooth)
    for k in range(size):
        value += math.lgamma(whole) - math.lgamma(whole + topic[k])
    for v in range(word_topic.shape[0]):
        for k in range(size):
            if word_topic[v, k] > 0:
                value += math.lgamma(smooth + word_topic[v, k]) - level
    return value


@njit(**FAST)
def prior_of_counts(starts: np.ndarray, topics: np.ndarray, prior: np.ndarray, size: int, steps: int) -> np.ndarray:
    """α after some steps of α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(n_d + α₀) − ψ(α₀)], none of which can
    lower p(z | α)."""
    alpha = prior.copy()
    inside = np.empty(size, np.int64)
    gains = np.empty(size)
    for _ in range(steps):
        gains[:] = 0.0
        lengths, mass = 0.0, 0.0
        for k in range(size):
            mass += alpha[k]
        for document in range(starts.shape[0] - 1):
            inside[:] = 0
            for token in range(starts[document], starts[document + 1]):
                inside[topics[token]] += 1
            lengths += digamma(mass + (starts[document + 1] - starts[document])) - digamma(mass)
            for k in range(size):
                if inside[k] > 0:
                    gains[k] += digamma(alpha[k] + inside[k]) - digamma(alpha[k])
        for k in range(size):
            alpha[k] = max(alpha[k] * gains[k] / lengths, 1e-6)  # a topic that no document uses keeps a little
    return alpha
