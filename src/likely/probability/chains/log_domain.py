"""Forward and backward along hidden Markov chains with logarithms throughout: slower, and right for any numbers.

log αₜ(j) = log bₜ(j) + log Σᵢ exp(log αₜ₋₁(i) + log Aᵢⱼ)
log βₜ₋₁(i) = log Σⱼ exp(log Aᵢⱼ + log bₜ(j) + log βₜ(j))
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["forward_in_logs", "smooth_in_logs"]

COMPILED = {"cache": True, "error_model": "numpy", "nogil": True}

LEAST = 1e-200
"""Above this a sum of scaled numbers has lost nothing that matters by the underflow of its terms."""


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _log_sum(values: np.ndarray) -> float:
    largest = -np.inf
    for k in range(values.shape[0]):
        largest = max(largest, values[k])
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(values.shape[0]):
        total += np.exp(values[k] - largest)
    return largest + np.log(total)


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _log_product(
    log_row: np.ndarray, matrix: np.ndarray, log_matrix: np.ndarray, terms: np.ndarray, out: np.ndarray
) -> None:
    """out[j] = log Σᵢ exp(log_row[i]) matrix[i, j]: with one exponential for each i, where that is enough."""
    size = log_row.shape[0]
    largest = -np.inf
    for i in range(size):
        largest = max(largest, log_row[i])
    for j in range(size):
        out[j] = 0.0
    if largest > -np.inf:
        for i in range(size):
            own = np.exp(log_row[i] - largest)
            for j in range(size):
                out[j] += own * matrix[i, j]
    for j in range(size):
        if out[j] > LEAST:
            out[j] = largest + np.log(out[j])
            continue
        for i in range(size):
            terms[i] = log_row[i] + log_matrix[i, j]
        out[j] = _log_sum(terms)


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _forward(
    log_initial: np.ndarray,
    transition: np.ndarray,
    log_transition: np.ndarray,
    log_emission: np.ndarray,
    start: int,
    stop: int,
    log_alpha: np.ndarray,
) -> tuple[float, int]:
    """log p(x) of one sequence and the step at which no state is possible, −1 if there is none."""
    states = log_initial.shape[0]
    terms, predicted = np.empty(states), np.empty(states)
    for t in range(start, stop):
        if t == start:
            predicted[:] = log_initial
        else:
            _log_product(log_alpha[t - 1 - start], transition, log_transition, terms, predicted)
        largest = -np.inf
        for j in range(states):
            log_alpha[t - start, j] = predicted[j] + log_emission[t, j]
            largest = max(largest, log_alpha[t - start, j])
        if largest == -np.inf:
            return -np.inf, t - start
    return _log_sum(log_alpha[stop - 1 - start]), -1


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def forward_in_logs(
    log_initial: np.ndarray,
    log_transition: np.ndarray,
    log_emission: np.ndarray,
    offsets: np.ndarray,
    filtered: np.ndarray,
    log_prob: np.ndarray,
    impossible: np.ndarray,
) -> None:
    """Fill p(zₜ | x₁ … xₜ), log p(x) and the impossible steps, where `filtered` is 0 from there on."""
    states, transition = log_initial.shape[0], np.exp(log_transition)
    for n in range(offsets.shape[0] - 1):
        start, stop = offsets[n], offsets[n + 1]
        log_alpha = filtered[start:stop]
        value, step = _forward(log_initial, transition, log_transition, log_emission, start, stop, log_alpha)
        log_prob[n], impossible[n] = value, step
        known = stop - start if impossible[n] < 0 else impossible[n]
        for t in range(stop - start):
            total = _log_sum(log_alpha[t]) if t < known else 0.0
            for j in range(states):
                log_alpha[t, j] = np.exp(log_alpha[t, j] - total) if t < known else 0.0


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def smooth_in_logs(
    log_initial: np.ndarray,
    log_transition: np.ndarray,
    log_emission: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray,
    chosen: np.ndarray,  # the sequences to take
    posterior: np.ndarray,
    pairs: np.ndarray,
    first: np.ndarray,
    log_prob: np.ndarray,
    impossible: np.ndarray,
) -> None:
    """Fill in γ and log p(x) of some sequences, and add their Σ ξ and γ₁. Impossible sequences have γ = ξ = 0."""
    states, transition = log_initial.shape[0], np.exp(log_transition)
    backwards, log_backwards = np.ascontiguousarray(transition.T), np.ascontiguousarray(log_transition.T)
    terms, seen, log_beta = np.empty(states), np.empty(states), np.empty(states)
    for n in chosen:
        start, stop, w = offsets[n], offsets[n + 1], weight[n]
        log_alpha = np.empty((stop - start, states))
        value, step = _forward(log_initial, transition, log_transition, log_emission, start, stop, log_alpha)
        log_prob[n], impossible[n] = value, step
        if impossible[n] >= 0:
            posterior[start:stop] = 0.0
            continue
        total = log_prob[n]
        log_beta[:] = 0.0
        for t in range(stop - 1, start - 1, -1):
            for j in range(states):
                posterior[t, j] = w * np.exp(log_alpha[t - start, j] + log_beta[j] - total)
                seen[j] = log_emission[t, j] + log_beta[j]
            if t == start:
                break
            for i in range(states):
                for j in range(states):
                    pairs[i, j] += w * np.exp(log_alpha[t - 1 - start, i] + log_transition[i, j] + seen[j] - total)
            _log_product(seen, backwards, log_backwards, terms, log_beta)
        for j in range(states):
            first[j] += posterior[start, j]
