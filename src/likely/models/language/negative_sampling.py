"""Word vectors by telling true neighbours from random words, in compiled loops.

    skip-gram   log σ(v_w · u_c) + Σₖ log σ(−v_w · u_{nₖ})          for each word w and neighbour c,   nₖ ~ noise
    cbow        the same with the mean of all neighbours' v in place of v_w, and u of the word itself

At the optimum of skip-gram v_w · u_c = PMI(w, c) − log k, if the noise is as frequent as the words. Rows are float32 of
a width that fills vector registers; σ is computed and not looked up; the loss of every pair is counted as it is met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from ...core.interrupt import blocks
from .sentences import Sentences

__all__ = ["alias_table", "train_by_noise"]

LANES = 8
"""Numbers of a vector register; rows are padded with zeros, which stay zero, to a multiple of it."""
COMPILED: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": True}
LEAST_RATE = 1e-4
"""What is left of the learning rate at the end, as a fraction."""
BLOCK = 1 << 28
"""Multiply-adds of the sentences of one call, about: part of a second."""


def train_by_noise(
    text: Sentences,
    *,
    cbow: bool,
    width: int,
    window: int,
    negative: int,
    epochs: int,
    rate: float,
    subsample: float,
    power: float,
    seed: int,
    report: Callable[[float], None],
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors v and u, (V, width) each; `report` is told the mean loss of a pair after every epoch."""
    size = len(text.vocabulary)
    padded = -(-width // LANES) * LANES
    vectors, contexts = np.zeros((size, padded), np.float32), np.zeros((size, padded), np.float32)
    vectors[:, :width] = (np.random.default_rng(seed).random((size, width)) - 0.5) / width
    noise = alias_table(text.counts.astype(np.float64) ** power)
    keep = _kept(text.counts, subsample)
    state = np.array([seed ^ 0x9E3779B97F4A7C15 or 1], dtype=np.uint64)
    longest = int(np.diff(text.offsets).max(initial=1))
    scratch = np.empty(longest, np.int32), np.zeros(padded, np.float32), np.zeros(padded, np.float32)
    for epoch in range(epochs):
        rates = np.array([rate * (1 - epoch / epochs), rate / epochs, rate * LEAST_RATE])
        loop = _cbow if cbow else _skip_gram
        loss, pairs = 0.0, 0.0
        for first, last in blocks(np.diff(text.offsets), BLOCK / (padded * (negative + 1) * (1 if cbow else window))):
            loss, pairs = loop(
                text.tokens,
                text.offsets,
                (first, last),
                text.weight,
                keep,
                *noise,
                vectors,
                contexts,
                *scratch,
                window,
                negative,
                rates,
                state,
                loss,
                pairs,
            )
        report(loss / max(pairs, 1.0))
    return vectors[:, :width].copy(), contexts[:, :width].copy()


def alias_table(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's table to draw by these weights with one random number: thresholds of 32 bits, and whom to take else.

    >>> threshold, other = alias_table(np.array([3.0, 1.0]))
    >>> (threshold / 2**32).tolist(), other.tolist()
    ([1.0, 0.5], [0, 0])
    """
    chance = weight / weight.sum() * len(weight)
    threshold, other = np.full(len(weight), 2**32, dtype=np.uint64), np.arange(len(weight), dtype=np.int32)
    small, large = (list(np.flatnonzero(part)) for part in (chance < 1, chance >= 1))
    while small and large:
        low, high = small.pop(), large[-1]
        threshold[low], other[low] = np.uint64(chance[low] * 2**32), high
        chance[high] -= 1 - chance[low]
        if chance[high] < 1:
            small.append(large.pop())
    return threshold, other


def _kept(counts: np.ndarray, subsample: float) -> np.ndarray:
    """The probability that an occurrence of a word is read: frequent words teach little more each time."""
    if not subsample:
        return np.ones(len(counts))
    often = counts / (subsample * counts.sum())
    return np.minimum(1.0, (np.sqrt(often) + 1) / often)


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _next(state: np.ndarray) -> np.uint64:
    """64 random bits by xorshift*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(0x2545F4914F6CDD1D)


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _below(state: np.ndarray, size: int) -> np.int64:
    """A random integer below size."""
    return np.int64(((_next(state) >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _read(tokens: np.ndarray, keep: np.ndarray, state: np.ndarray, words: np.ndarray) -> int:
    """The words of a sentence that are kept; how many."""
    count = 0
    for token in tokens:
        if keep[token] >= 1.0 or (_next(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0) < keep[token]:
            words[count] = token
            count += 1
    return count


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _tell_apart(
    given: np.ndarray,
    target: int,
    contexts: np.ndarray,
    threshold: np.ndarray,
    other: np.ndarray,
    negative: int,
    rate: np.float32,
    state: np.ndarray,
    change: np.ndarray,
) -> float:
    """One step on u of a true word and of random ones; what `given` should change by is left in `change`.

    The product of all σ is returned: their logarithms are taken for many pairs at once.
    """
    width = given.shape[0]
    for d in range(width):
        change[d] = np.float32(0.0)
    product = 1.0
    for k in range(negative + 1):
        word = np.int64(target)
        if k > 0:
            bits = _next(state)
            word = np.int64(((bits >> np.uint64(32)) * np.uint64(threshold.shape[0])) >> np.uint64(32))
            if (bits & np.uint64(0xFFFFFFFF)) >= threshold[word]:
                word = np.int64(other[word])
        row = contexts[word]
        dot = np.float32(0.0)
        for d in range(width):
            dot += given[d] * row[d]
        sign = np.float32(1.0) if k == 0 else np.float32(-1.0)
        dot = max(min(sign * dot, np.float32(60.0)), np.float32(-60.0))  # beyond, σ is 0 or 1 in float32
        right = np.float32(1.0) / (np.float32(1.0) + np.exp(-dot))
        product *= right
        step = sign * (np.float32(1.0) - right) * rate
        for d in range(width):
            own = row[d]
            change[d] += step * own
            row[d] = own + step * given[d]
    return product


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _skip_gram(
    tokens: np.ndarray,
    offsets: np.ndarray,
    part: tuple[int, int],
    weight: np.ndarray,
    keep: np.ndarray,
    threshold: np.ndarray,
    other: np.ndarray,
    vectors: np.ndarray,
    contexts: np.ndarray,
    words: np.ndarray,
    change: np.ndarray,
    _: np.ndarray,
    window: int,
    negative: int,
    rates: np.ndarray,
    state: np.ndarray,
    loss: float,
    pairs: float,
) -> tuple[float, float]:
    """A part of an epoch: Σ w loss and Σ w of its pairs are added to what was so far."""
    width, total = vectors.shape[1], float(tokens.shape[0])
    for n in range(part[0], part[1]):
        rate = np.float32(max(rates[2], rates[0] - rates[1] * offsets[n] / total) * weight[n])
        count = _read(tokens[offsets[n] : offsets[n + 1]], keep, state, words)
        product, own_loss = 1.0, 0.0
        for i in range(count):
            reach = 1 + _below(state, window)
            given = vectors[words[i]]
            for j in range(max(0, i - reach), min(count, i + reach + 1)):
                if j == i:
                    continue
                product *= _tell_apart(given, words[j], contexts, threshold, other, negative, rate, state, change)
                for d in range(width):
                    given[d] += change[d]
                pairs += weight[n]
                if product < 1e-100:
                    own_loss -= np.log(product)
                    product = 1.0
        loss += weight[n] * (own_loss - np.log(product))
    return loss, pairs


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _cbow(
    tokens: np.ndarray,
    offsets: np.ndarray,
    part: tuple[int, int],
    weight: np.ndarray,
    keep: np.ndarray,
    threshold: np.ndarray,
    other: np.ndarray,
    vectors: np.ndarray,
    contexts: np.ndarray,
    words: np.ndarray,
    change: np.ndarray,
    mean: np.ndarray,
    window: int,
    negative: int,
    rates: np.ndarray,
    state: np.ndarray,
    loss: float,
    pairs: float,
) -> tuple[float, float]:
    """A part of an epoch: Σ w loss and Σ w of its words are added to what was so far."""
    width, total = vectors.shape[1], float(tokens.shape[0])
    for n in range(part[0], part[1]):
        rate = np.float32(max(rates[2], rates[0] - rates[1] * offsets[n] / total) * weight[n])
        count = _read(tokens[offsets[n] : offsets[n + 1]], keep, state, words)
        for i in range(count):
            reach = 1 + _below(state, window)
            first, last = max(0, i - reach), min(count, i + reach + 1)
            if last - first < 2:
                continue
            fraction = np.float32(1.0 / (last - first - 1))
            mean[:] = np.float32(0.0)
            for j in range(first, last):
                if j != i:
                    for d in range(width):
                        mean[d] += fraction * vectors[words[j], d]
            product = _tell_apart(mean, words[i], contexts, threshold, other, negative, rate, state, change)
            for j in range(first, last):
                if j != i:
                    for d in range(width):
                        vectors[words[j], d] += fraction * change[d]
            loss -= weight[n] * np.log(product)
            pairs += weight[n]
    return loss, pairs
