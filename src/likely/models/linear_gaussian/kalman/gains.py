"""The covariance recursion of the Kalman filter: covariances and gains, which do not depend on the data's values.

    P ← A P_f Aᵀ + Q        F = C P Cᵀ + R        K = P Cᵀ F⁻¹        P_f = (1 − KC) P (1 − KC)ᵀ + K R Kᵀ

They depend on which values are missing and on nothing else. So each distinct step is computed once: the first steps of
all sequences are shared, and where the covariance no longer moves its step follows itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ....core.interrupt import interruptible
from .small_matrices import (
    COMPILED,
    add,
    cholesky,
    close,
    fill,
    grown,
    load,
    sandwich,
    store,
)

__all__ = ["STEADY", "Gains", "gains"]

STEADY = 1e-14
"""Covariances that move by less than this fraction of their variances in one step have arrived. Where they converge at
rate ρ, STEADY / (1 − ρ) of the way is left then: answers keep ten digits down to 1 − ρ = 1e-4."""

SINGULAR = 1e-14
"""A pivot below this fraction of its variance is rounding and no more."""


class Gains(NamedTuple):
    """The covariance recursion. Distinct steps are rows of tables; `step` says which one each time has."""

    step: np.ndarray
    """(T,)"""
    pattern: np.ndarray
    """(steps,) which columns were seen."""
    predicted: np.ndarray
    """(steps, k, k) Cov(z_t | x before t)"""
    filtered: np.ndarray
    """(steps, k, k) Cov(z_t | x up to t)"""
    gain: np.ndarray
    """(steps, k, p) zero for columns not seen."""
    whiten: np.ndarray
    """(steps, p, p) W with W F Wᵀ = 1 over the columns seen, F the covariance of x_t given the past."""
    constant: np.ndarray
    """(steps,) log |W| − n log(2π)/2: the log density of x_t is this − ½‖W (x_t − E x_t)‖²."""
    failed: int
    """The first time whose x_t has no density given the past, or −1."""


def gains(
    pattern: np.ndarray,
    starts: np.ndarray,
    seen: np.ndarray,
    transition: np.ndarray,
    transition_covariance: np.ndarray,
    observation: np.ndarray,
    observation_covariance: np.ndarray,
    initial_covariance: np.ndarray,
    steady: float = STEADY,
) -> Gains:
    """The recursion over all sequences; with a negative `steady` no step of a sequence is taken for its follower.

    Step t of a sequence from starts[s] to starts[s + 1] knows the columns seen[pattern[t]].

    >>> one, always = np.eye(1), np.ones((1, 1), dtype=bool)
    >>> steps = gains(np.zeros(200, dtype=int), np.array([0, 200]), always, one, one, one, one, one)
    >>> round(float(steps.gain[-1, 0, 0]), 12)      # a random walk in noise of the same variance: the golden ratio − 1
    0.61803398875
    >>> len(steps.gain) < 30                        # of 200 steps
    True
    """
    system = transition, transition_covariance, observation, observation_covariance, initial_covariance
    work = len(pattern) * float(system[0].shape[0]) ** 3
    return Gains(*interruptible(work, _gains, pattern, starts, seen, *system, steady))


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _gains(
    pattern: np.ndarray,
    starts: np.ndarray,
    seen: np.ndarray,
    transition: np.ndarray,
    transition_covariance: np.ndarray,
    observation: np.ndarray,
    observation_covariance: np.ndarray,
    initial_covariance: np.ndarray,
    steady: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    p, k = observation.shape
    step = np.empty(pattern.shape[0], np.int64)
    predicted, filtered = np.empty((64, k, k)), np.empty((64, k, k))
    gain, whiten = np.empty((64, k, p)), np.empty((64, p, p))
    constant, own = np.empty(pattern.shape[0]), np.empty(pattern.shape[0], np.int64)
    # The first follower of each step that was computed, and the pattern it had; the last place is before the start.
    follower, follower_pattern = np.full(pattern.shape[0] + 1, -1), np.full(pattern.shape[0] + 1, -1)
    at_rest = np.full(seen.shape[0], -1)  # the step of each pattern that follows itself
    now, work = np.empty((k, k)), np.empty((k, k))
    new_gain, new_whiten, new_filtered = np.empty((k, p)), np.empty((p, p)), np.empty((k, k))
    new = new_gain, new_whiten, new_filtered
    space = np.empty(p, np.int64), np.empty((k, p)), np.empty((p, p)), np.empty((p, p)), np.empty((k, k)), work
    count = 0
    for sequence in range(starts.shape[0] - 1):
        last = -1
        for t in range(starts[sequence], starts[sequence + 1]):
            kind = pattern[t]
            if follower_pattern[last] == kind:
                last = follower[last]
                step[t] = last
                continue
            if last < 0:
                fill(now, 0.0)
                add(initial_covariance, now)
            else:
                load(filtered, last, new_filtered)
                sandwich(transition, new_filtered, work, now)
                add(transition_covariance, now)
            rest = at_rest[kind]
            if rest < 0 and last >= 0 and own[last] == kind:
                rest = last
            if rest >= 0 and close(predicted, rest, now, steady):
                at_rest[kind] = rest
                if rest == last or follower[last] < 0:
                    follower[last], follower_pattern[last] = rest, kind
                last = rest
                step[t] = rest
                continue
            if count == predicted.shape[0]:
                predicted, filtered, gain, whiten = grown(predicted), grown(filtered), grown(gain), grown(whiten)
            store(now, predicted, count)
            own[count] = kind
            constant[count] = _update(seen, kind, now, observation, observation_covariance, *new, *space)
            if not math.isfinite(constant[count]):
                return step, own[:0], predicted[:0], filtered[:0], gain[:0], whiten[:0], constant[:0], t
            store(new_gain, gain, count)
            store(new_whiten, whiten, count)
            store(new_filtered, filtered, count)
            if follower[last] < 0:
                follower[last], follower_pattern[last] = count, kind
            last = count
            step[t] = count
            count += 1
    return (
        step,
        own[:count],
        predicted[:count],
        filtered[:count],
        gain[:count],
        whiten[:count],
        constant[:count],
        -1,
    )


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _update(
    seen: np.ndarray,
    kind: int,
    predicted: np.ndarray,
    observation: np.ndarray,
    noise: np.ndarray,
    gain: np.ndarray,
    whiten: np.ndarray,
    filtered: np.ndarray,
    columns: np.ndarray,
    cross: np.ndarray,
    spread: np.ndarray,
    lower: np.ndarray,
    rest: np.ndarray,
    work: np.ndarray,
) -> float:
    """Gain, whitening and filtered covariance of one step; the constant of its log density, infinite if it has none."""
    p, k = observation.shape
    n = 0
    for o in range(p):
        if seen[kind, o]:
            columns[n] = o
            n += 1
    fill(gain, 0.0)
    fill(whiten, 0.0)
    if n == 0:
        fill(filtered, 0.0)
        add(predicted, filtered)
        return 0.0
    for i in range(k):  # P Cᵀ
        for a in range(n):
            total = 0.0
            for j in range(k):
                total += predicted[i, j] * observation[columns[a], j]
            cross[i, a] = total
    for a in range(n):  # F = C P Cᵀ + R
        for c in range(a + 1):
            total = noise[columns[a], columns[c]]
            for j in range(k):
                total += observation[columns[a], j] * cross[j, c]
            spread[a, c] = total
            spread[c, a] = total
    if cholesky(spread, lower, n, SINGULAR) > 0:
        return math.inf
    constant = -0.5 * n * math.log(2 * math.pi)
    for a in range(n):  # W, the inverse of the root of F
        constant -= math.log(lower[a, a])
        for c in range(a):
            total = 0.0
            for m in range(c, a):
                total -= lower[a, m] * whiten[columns[m], columns[c]]
            whiten[columns[a], columns[c]] = total / lower[a, a]
        whiten[columns[a], columns[a]] = 1.0 / lower[a, a]
    for i in range(k):  # K = P Cᵀ Wᵀ W
        for a in range(n):
            total = 0.0
            for m in range(a + 1):
                total += cross[i, m] * whiten[columns[a], columns[m]]
            for c in range(a + 1):
                gain[i, columns[c]] += total * whiten[columns[a], columns[c]]
    for i in range(k):
        for j in range(k):
            total = 1.0 if i == j else 0.0
            for a in range(n):
                total -= gain[i, columns[a]] * observation[columns[a], j]
            rest[i, j] = total
    # Joseph's form, (1 − KC) P (1 − KC)ᵀ + K R Kᵀ, is a sum of squares: it stays a covariance
    sandwich(rest, predicted, work, filtered)
    sandwich(gain, noise, cross, rest)
    add(rest, filtered)
    return constant
