"""Viterbi: the most probable path of hidden states.

    δₜ(j) = log bₜ(j) + maxᵢ (δₜ₋₁(i) + log Aᵢⱼ),      z_T = argmax δ_T,      zₜ₋₁ = argmaxᵢ (δₜ₋₁(i) + log A_{i zₜ})

The largest δ of each step is taken out and summed apart, so that no length costs digits. The way back asks for the best
predecessor only where the path goes, so that no pointers are kept.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ...core.doors import check_offsets, check_sizes
from ...core.interrupt import interruptible
from .forward_backward import check_chain

__all__ = ["best_paths", "best_paths_backwards", "viterbi"]

COMPILED = {"cache": True, "error_model": "numpy", "nogil": True}


def viterbi(
    initial: np.ndarray, transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best path (T,) and log p(x, path) of each sequence (n,): −∞ where no path is possible.

    >>> log_emission = np.log([[0.9, 0.2], [0.4, 0.5], [0.1, 0.7]])
    >>> transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> path, log_prob = viterbi(np.array([0.5, 0.5]), transition, log_emission, np.array([0, 3]))
    >>> path, log_prob.round(4)
    (array([0, 1, 1]), array([-3.8144]))
    """
    check_chain("viterbi", initial, transition, log_emission, offsets)
    with np.errstate(divide="ignore"):
        return best_paths(np.log(initial), np.log(np.ascontiguousarray(transition)), log_emission, offsets)


def best_paths(
    log_initial: np.ndarray, log_transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The path of the largest score (T,), and that score, of each sequence (n,): nothing need be a probability.

    >>> best_paths(np.zeros(2), np.array([[0.0, 2.0], [0.0, 1.0]]), np.zeros((3, 2)), np.array([0, 3]))
    (array([0, 1, 1]), array([3.]))
    """
    check_chain("best_paths", log_initial, log_transition, log_emission, offsets)
    log_emission = np.ascontiguousarray(log_emission, dtype=np.float64)
    path, log_prob = np.empty(len(log_emission), dtype=np.int64), np.empty(len(offsets) - 1)
    states, width = len(log_initial), -(-len(log_initial) // 4) * 4
    ahead, best = np.full((states, width), -np.inf), np.empty((len(log_emission), width))
    ahead[:, :states] = log_transition
    backwards = np.ascontiguousarray(log_transition.T)
    told = (best, path, log_prob)
    interruptible(best.size * float(states), _viterbi, log_initial, ahead, backwards, log_emission, offsets, *told)
    return path, log_prob


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _viterbi(
    log_initial: np.ndarray,
    ahead: np.ndarray,
    backwards: np.ndarray,
    log_emission: np.ndarray,
    offsets: np.ndarray,
    best: np.ndarray,
    path: np.ndarray,
    log_prob: np.ndarray,
) -> None:
    """`ahead` is log A with columns of −∞ up to a multiple of four, and `backwards` is its transpose."""
    states = log_initial.shape[0]
    row = np.empty(ahead.shape[1])
    for n in range(offsets.shape[0] - 1):
        start, stop = offsets[n], offsets[n + 1]
        total = 0.0
        for t in range(start, stop):
            if t == start:
                row[:states] = log_initial
            else:
                _best_ahead(best[t - 1], ahead, row)
            largest = -np.inf
            for j in range(states):
                row[j] += log_emission[t, j]
                largest = max(largest, row[j])
            if largest == -np.inf:
                largest = 0.0
            total += largest
            for j in range(states):
                best[t, j] = row[j] - largest
        state = int(np.argmax(best[stop - 1, :states]))
        log_prob[n] = total + best[stop - 1, state]
        path[stop - 1] = state
        for t in range(stop - 2, start - 1, -1):
            chosen, largest = 0, -np.inf
            for i in range(states):
                value = best[t, i] + backwards[state, i]
                if value > largest:
                    chosen, largest = i, value
            state = chosen
            path[t] = state


@njit(inline="always", **COMPILED)  # type: ignore[untyped-decorator]
def _best_ahead(before: np.ndarray, ahead: np.ndarray, row: np.ndarray) -> None:
    """maxᵢ (before[i] + ahead[i, j]) of all j, four at a time, which so stay in registers."""
    one, two, three = np.uintp(1), np.uintp(2), np.uintp(3)
    for column in range(0, ahead.shape[1], 4):
        j = np.uintp(column)
        a = b = c = d = -np.inf
        for place in range(ahead.shape[0]):
            i = np.uintp(place)
            p, q = before[i] + ahead[i, j], before[i] + ahead[i, j + one]
            r, s = before[i] + ahead[i, j + two], before[i] + ahead[i, j + three]
            a, b = p if p > a else a, q if q > b else b
            c, d = r if r > c else c, s if s > d else d
        row[j], row[j + one], row[j + two], row[j + three] = a, b, c, d


def best_paths_backwards(log_last: np.ndarray, log_before: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The most probable path (T,) of chains told from their ends: log p(zₜ = j) and log p(zₜ = i | zₜ₊₁ = j).

    `log_last` is (T, K), of which the last step of each sequence is read, and `log_before` (T, K, K).

    >>> certain = np.log(np.array([[[1.0, 1e-9], [1e-9, 1.0]]] * 2))
    >>> best_paths_backwards(np.log([[0.5, 0.5], [0.4, 0.6]]), certain, np.array([0, 2]))
    array([1, 1])
    """
    owner = "best_paths_backwards"
    check_sizes(owner, {"log_last": (log_last, "T K"), "log_before": (log_before, "T K K")})
    check_offsets(owner, offsets, len(log_last))
    path = np.empty(len(log_last), dtype=np.int64)
    interruptible(log_before.size, _best_backwards, log_last, log_before, offsets, np.empty(log_last.shape), path)
    return path


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _best_backwards(
    log_last: np.ndarray, log_before: np.ndarray, offsets: np.ndarray, best: np.ndarray, path: np.ndarray
) -> None:
    """best[t, j]: of all that lies before step t, given the state j there."""
    states = log_last.shape[1]
    for n in range(offsets.shape[0] - 1):
        start, stop = offsets[n], offsets[n + 1]
        best[start] = 0.0
        for t in range(start + 1, stop):
            best[t] = -np.inf
            for i in range(states):
                for j in range(states):
                    best[t, j] = max(best[t, j], best[t - 1, i] + log_before[t - 1, i, j])
        for t in range(stop - 1, start - 1, -1):
            chosen, largest = 0, -np.inf
            for i in range(states):
                value = best[t, i] + (log_last[t, i] if t == stop - 1 else log_before[t, i, path[t + 1]])
                if value > largest:
                    chosen, largest = i, value
            path[t] = chosen
