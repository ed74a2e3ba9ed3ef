"""The Kalman smoother: the state of a linear-Gaussian model given all observations, before and after.

Given the next state, z_t knows nothing more from the future (Rauch, Tung and Striebel), so with f for "filtered":

    z_t | z_{t+1}, x_{≤t} ~ N( m_f + G (z_{t+1} − A m_f − b),  U )        G = P_f Aᵀ (A P_f Aᵀ + Q)⁻¹
    m_t = m_f + G (m_{t+1} − A m_f − b)        V_t = U + G V_{t+1} Gᵀ        Cov(z_{t+1}, z_t | x) = V_{t+1} Gᵀ

U = (1 − GA) P_f (1 − GA)ᵀ + G Q Gᵀ is a sum of squares, as all of V is: it stays a covariance. Distinct covariances are
computed once, as in the filter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ....core.interrupt import interruptible
from .gains import STEADY
from .recursion import Filtered, Observed, System, check_system
from .small_matrices import (
    COMPILED,
    add,
    cholesky,
    close,
    grown,
    load,
    sandwich,
    store,
)

__all__ = ["Smoothed", "run_smoother", "scale_trils"]

DEPENDENT = 1e-13
"""A pivot below this fraction of its variance is that of a state which others determine."""


class Smoothed(NamedTuple):
    """What is known of each time in the end. Distinct covariances are rows of tables; `row` says which each has."""

    means: np.ndarray
    """(T, k) E[z_t | x]"""
    back: np.ndarray
    """(steps, k, k) G of each step of the filter."""
    rest: np.ndarray
    """(steps, k, k) U of each step of the filter."""
    row: np.ndarray
    """(T,)"""
    covariance: np.ndarray
    """(rows, k, k) Cov(z_t | x)"""
    step: np.ndarray
    """(rows,) the step of the filter that the row belongs to."""
    after: np.ndarray
    """(rows,) the row of z_{t+1}; −1 for the last of a sequence."""


def run_smoother(data: Observed, system: System, filtered: Filtered, steady: float = STEADY) -> Smoothed:
    """Smooth all sequences, from what the filter found.

    >>> from likely.data.rows import Ragged
    >>> from likely.models.linear_gaussian.kalman.recursion import observe, run_filter
    >>> one, zero, data = np.eye(1), np.zeros(1), observe(Ragged.of([np.zeros((99, 1))]))
    >>> walk = System(one, zero, one, one, zero, one, zero, one)
    >>> smooth = run_smoother(data, walk, run_filter(data, walk))
    >>> round(float(smooth.covariance[smooth.row[50], 0, 0] ** -2), 12)      # r/√(1 + 4r/q), far from the ends
    5.0
    """
    check_system(system, data)
    steps = filtered.gains
    states = float(len(system.transition))
    work = 4 * len(steps.filtered) * states**3
    back, rest = interruptible(work, _back, steps.filtered, system.transition, system.transition_covariance)
    given = (data.starts, steps.step, back, filtered.predicted, filtered.means)
    means = interruptible(filtered.means.size * states, _smooth_means, *given)
    table = (steps.step, data.starts, steps.filtered, back, rest, steady)
    return Smoothed(means, back, rest, *interruptible(2 * len(steps.step) * states**3, _smoothed, *table))


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _back(
    filtered: np.ndarray, transition: np.ndarray, transition_covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """G and U of each step. States that others determine are left out of the inverse: G needs a solution, not all."""
    steps, k = filtered.shape[:2]
    back, rest = np.empty((steps, k, k)), np.empty((steps, k, k))
    next_covariance, lower, work = np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    now, ahead, gain, left = np.empty((k, k)), np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    column = np.empty(k)
    for i in range(steps):
        load(filtered, i, now)
        for a in range(k):  # A P_f
            for c in range(k):
                total = 0.0
                for m in range(k):
                    total += transition[a, m] * now[m, c]
                ahead[a, c] = total
        sandwich(transition, now, work, next_covariance)
        add(transition_covariance, next_covariance)
        cholesky(next_covariance, lower, k, DEPENDENT)
        for c in range(k):
            for a in range(k):
                total = ahead[a, c]
                for m in range(a):
                    total -= lower[a, m] * column[m]
                column[a] = total / lower[a, a] if lower[a, a] > 0 else 0.0
            for a in range(k - 1, -1, -1):
                total = column[a]
                for m in range(a + 1, k):
                    total -= lower[m, a] * column[m]
                column[a] = total / lower[a, a] if lower[a, a] > 0 else 0.0
            for a in range(k):
                gain[c, a] = column[a]
        for a in range(k):
            for c in range(k):
                total = 1.0 if a == c else 0.0
                for m in range(k):
                    total -= gain[a, m] * transition[m, c]
                left[a, c] = total
        sandwich(left, now, work, ahead)
        sandwich(gain, transition_covariance, work, next_covariance)
        add(next_covariance, ahead)
        store(gain, back, i)
        store(ahead, rest, i)
    return back, rest


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _smoothed(
    step: np.ndarray, starts: np.ndarray, filtered: np.ndarray, back: np.ndarray, rest: np.ndarray, steady: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    length, k = step.shape[0], filtered.shape[1]
    index = np.empty(length, np.int64)
    covariance = np.empty((64, k, k))
    own, after = np.empty(length, np.int64), np.empty(length, np.int64)
    # The first row computed before each row, and its step; rows that end a sequence and rows at rest, of each step.
    before, before_step = np.full(length, -1), np.full(length, -1)
    ends, at_rest = np.full(filtered.shape[0], -1), np.full(filtered.shape[0], -1)
    now, after_now, gain, work = np.empty((k, k)), np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    count = 0
    for sequence in range(starts.shape[0] - 1):
        last = -1
        for t in range(starts[sequence + 1] - 1, starts[sequence] - 1, -1):
            i = step[t]
            if last < 0 and ends[i] >= 0:
                last = ends[i]
                index[t] = last
                continue
            if last >= 0 and before_step[last] == i:
                last = before[last]
                index[t] = last
                continue
            if last < 0:
                load(filtered, i, now)
            else:
                load(back, i, gain)
                load(covariance, last, after_now)
                sandwich(gain, after_now, work, now)
                load(rest, i, work)
                add(work, now)
                settled = at_rest[i]
                if settled < 0 and own[last] == i and after[last] >= 0:
                    settled = last
                if settled >= 0 and close(covariance, settled, now, steady):
                    at_rest[i] = settled
                    if settled == last or before[last] < 0:
                        before[last], before_step[last] = settled, i
                    last = settled
                    index[t] = last
                    continue
            if count == covariance.shape[0]:
                covariance = grown(covariance)
            store(now, covariance, count)
            own[count], after[count] = i, last
            if last < 0:
                ends[i] = count
            elif before[last] < 0:
                before[last], before_step[last] = count, i
            last = count
            index[t] = count
            count += 1
    return index, covariance[:count], own[:count].copy(), after[:count].copy()


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _smooth_means(
    starts: np.ndarray, step: np.ndarray, back: np.ndarray, predicted: np.ndarray, filtered: np.ndarray
) -> np.ndarray:
    """E[z_t | x], (T, k), from the means of the filter."""
    length, k = filtered.shape
    means = np.empty((length, k))
    news = np.empty(k)
    for sequence in range(starts.shape[0] - 1):
        final = starts[sequence + 1] - 1
        means[final] = filtered[final]
        for t in range(final - 1, starts[sequence] - 1, -1):
            i = step[t]
            for j in range(k):
                news[j] = means[t + 1, j] - predicted[t + 1, j]
            for j in range(k):
                total = filtered[t, j]
                for m in range(k):
                    total += back[i, j, m] * news[m]
                means[t, j] = total
    return means


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def scale_trils(covariances: np.ndarray) -> np.ndarray:
    """Lower triangular roots of covariances (n, k, k), which may be singular."""
    roots = np.zeros_like(covariances)
    for i in range(covariances.shape[0]):
        cholesky(covariances[i], roots[i], covariances.shape[1], math.ldexp(1.0, -50))
    return roots
