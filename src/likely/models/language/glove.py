"""GloVe: word vectors by weighted least squares on the logarithms of counts.

    J = Σ f(X_wc) (v_w · u_c + b_w + a_c − log X_wc)²,      f(x) = min(1, (x / x_max)^¾)

AdaGrad over the pairs that occur, in a new order each epoch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from .co_occurrence import Pairs

__all__ = ["train_glove"]

POWER = 0.75
BLOCK = 1 << 18
"""Pairs of one call: part of a second."""


def train_glove(
    pairs: Pairs,
    size: int,
    *,
    width: int,
    epochs: int,
    rate: float,
    largest: float,
    seed: int,
    report: Callable[[float], None],
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors v and u, (V, width) each; `report` is told the mean of f · error² after every epoch."""
    rng = np.random.default_rng(seed)
    rows = ((rng.random((2, size, width + 1)) - 0.5) / (width + 1)).astype(np.float32)  # the last number is the bias
    squares = np.ones_like(rows)
    weight = np.minimum(1.0, (pairs.counts / largest) ** POWER).astype(np.float32)
    logs = np.log(pairs.counts).astype(np.float32)
    for _ in range(epochs):
        order, loss = rng.permutation(len(logs)), 0.0
        for first in range(0, len(order), BLOCK):
            given = (pairs.words, pairs.neighbours, weight, logs, *rows, *squares, np.float32(rate))
            loss = _steps(order[first : first + BLOCK], *given, loss)
        report(loss / len(logs))
    return rows[0, :, :width].copy(), rows[1, :, :width].copy()


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)  # type: ignore[untyped-decorator]
def _steps(
    order: np.ndarray,
    words: np.ndarray,
    neighbours: np.ndarray,
    weight: np.ndarray,
    logs: np.ndarray,
    vectors: np.ndarray,
    contexts: np.ndarray,
    vector_squares: np.ndarray,
    context_squares: np.ndarray,
    rate: np.float32,
    total: float,
) -> float:
    """A step of AdaGrad on each pair; Σ f · error² as it was met is added to the total."""
    last, one = vectors.shape[1] - 1, np.float32(1.0)
    for at in order:
        v, u = vectors[words[at]], contexts[neighbours[at]]
        g, h = vector_squares[words[at]], context_squares[neighbours[at]]
        error = v[last] + u[last] - logs[at]
        for d in range(last):
            error += v[d] * u[d]
        total += weight[at] * error * error
        step = np.float32(2.0) * weight[at] * error
        for d in range(last + 1):
            to_v = step * (u[d] if d < last else one)
            to_u = step * (v[d] if d < last else one)
            v[d] -= rate * to_v / np.sqrt(g[d])
            u[d] -= rate * to_u / np.sqrt(h[d])
            g[d] += to_v * to_v
            h[d] += to_u * to_u
    return total
