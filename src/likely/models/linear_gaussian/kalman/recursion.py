"""The Kalman filter: the state of a linear-Gaussian model given the observations so far.

    z_{t+1} = A z_t + b + w,  w ~ N(0, Q)        x_t = C z_t + d + v,  v ~ N(0, R)        z_0 ~ N(m, P)
    m_f = m + K (x_t − C m − d)                  m ← A m_f + b

The gains K come from the covariance recursion, which runs first and on its own (`gains.gains`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from ....core.doors import check_indices, check_offsets, check_sizes
from ....core.errors import DataError
from ....core.interrupt import interruptible
from ....data.rows import Ragged
from .gains import STEADY, Gains, gains
from .small_matrices import COMPILED

__all__ = ["SHAPES", "Filtered", "Observed", "System", "check_system", "observe", "run_filter", "simulate"]


class System(NamedTuple):
    """The matrices of a linear-Gaussian model: k states, p observed columns; float64 and contiguous."""

    transition: np.ndarray
    """A, (k, k)"""
    transition_offset: np.ndarray
    """b, (k,)"""
    transition_covariance: np.ndarray
    """Q, (k, k)"""
    observation: np.ndarray
    """C, (p, k)"""
    observation_offset: np.ndarray
    """d, (p,)"""
    observation_covariance: np.ndarray
    """R, (p, p)"""
    initial_mean: np.ndarray
    """m, (k,)"""
    initial_covariance: np.ndarray
    """P, (k, k)"""


SHAPES: Mapping[str, str] = {
    "transition": "kk",
    "transition_offset": "k",
    "transition_covariance": "kk",
    "observation": "pk",
    "observation_offset": "p",
    "observation_covariance": "pp",
    "initial_mean": "k",
    "initial_covariance": "kk",
}
"""The axes of each: k states, p observed columns."""


class Observed(NamedTuple):
    """Series as rows of any length, NaN where a value is missing, and the patterns in which values are missing."""

    rows: Ragged
    """n series of steps (T, p) in all, float64 and contiguous."""
    pattern: np.ndarray
    """(T,) the row of `seen` that says which columns of this step are known."""
    seen: np.ndarray
    """(patterns, p) True where known."""

    @property
    def x(self) -> np.ndarray:
        """(T, p), as the compiled loops take it."""
        return self.rows.values.numpy()

    @property
    def starts(self) -> np.ndarray:
        """(n + 1,) where each series begins, and the end of the last."""
        return self.rows.offsets.numpy()


class Filtered(NamedTuple):
    """What the filter knows at each time; covariances are `gains.filtered[gains.step]`."""

    gains: Gains
    predicted: np.ndarray
    """(T, k) E[z_t | x before t]"""
    means: np.ndarray
    """(T, k) E[z_t | x up to t]"""
    log_prob: np.ndarray
    """(n,) log p(x) of each sequence."""


def observe(rows: Ragged) -> Observed:
    """Series with their patterns of missing values.

    >>> observe(Ragged.of([[[1.0, 2.0], [3.0, np.nan], [0.0, 4.0]]], missing=True)).pattern
    array([1, 0, 1])
    """
    known = ~np.isnan(rows.values.numpy())
    if known.all():
        return Observed(rows, np.zeros(len(known), dtype=np.int64), np.ones((1, known.shape[1]), dtype=np.bool_))
    bits = np.packbits(known, axis=1)  # a row of bits is one thing to sort, which numpy does ten times faster
    wide = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    wide[:, : bits.shape[1]] = bits
    kinds = wide.view(np.uint64 if wide.shape[1] == 8 else f"V{wide.shape[1]}").reshape(-1)
    _, first, pattern = np.unique(kinds, return_index=True, return_inverse=True)
    return Observed(rows, pattern.astype(np.int64, copy=False), np.ascontiguousarray(known[first]))


def run_filter(data: Observed, system: System, steady: float = STEADY) -> Filtered:
    """Filter all sequences.

    >>> one, zero = np.eye(1), np.zeros(1)
    >>> walk = System(one, zero, one, one, zero, one, zero, one)
    >>> filtered = run_filter(observe(Ragged.of([[[1.0], [2.0], [np.nan]]], missing=True)), walk)
    >>> filtered.means.ravel().round(12).tolist()
    [0.5, 1.4, 1.4]
    """
    check_system(system, data)
    steps = gains(
        data.pattern,
        data.starts,
        data.seen,
        system.transition,
        system.transition_covariance,
        system.observation,
        system.observation_covariance,
        system.initial_covariance,
        steady,
    )
    if steps.failed >= 0:
        raise DataError(
            f"The observation at row {steps.failed} has no density given the rows before it: its covariance C P Cᵀ + R "
            "is singular or not finite. Give observation_covariance a positive diagonal, leave out columns that repeat "
            "others, or take a transition that does not explode."
        )
    means = interruptible(
        data.x.size * float(len(system.transition)),
        _filter_means,
        data.x,
        data.starts,
        system.transition,
        system.transition_offset,
        system.observation,
        system.observation_offset,
        system.initial_mean,
        steps.step,
        steps.gain,
        steps.whiten,
        steps.constant,
    )
    return Filtered(steps, *means)


def check_system(system: System, data: Observed) -> None:
    """What the compiled recursions of this folder index: matrices, series and patterns whose shapes agree."""
    shapes = {name: (getattr(system, name), " ".join(axes)) for name, axes in SHAPES.items()}
    known = {"pattern": (data.pattern, "T"), "seen": (data.seen, "patterns p")}
    sizes = check_sizes("KalmanFilter", shapes | {"x": (data.x, "T p")} | known)
    check_offsets("KalmanFilter", data.starts, sizes["T"])
    check_indices("KalmanFilter", "pattern", data.pattern, sizes["patterns"])


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _filter_means(
    x: np.ndarray,
    starts: np.ndarray,
    transition: np.ndarray,
    transition_offset: np.ndarray,
    observation: np.ndarray,
    observation_offset: np.ndarray,
    initial_mean: np.ndarray,
    step: np.ndarray,
    gain: np.ndarray,
    whiten: np.ndarray,
    constant: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E[z_t | x before t], E[z_t | x up to t], both (T, k), and log p(x) of each sequence."""
    p, k = observation.shape
    predicted, filtered = np.empty((x.shape[0], k)), np.empty((x.shape[0], k))
    log_prob = np.zeros(starts.shape[0] - 1)
    now, surprise = np.empty(k), np.empty(p)
    for sequence in range(starts.shape[0] - 1):
        now[:] = initial_mean
        total_log_prob = 0.0
        for t in range(starts[sequence], starts[sequence + 1]):
            i = step[t]
            for j in range(k):
                predicted[t, j] = now[j]
            for o in range(p):
                total = x[t, o] - observation_offset[o]
                for j in range(k):
                    total -= observation[o, j] * now[j]
                surprise[o] = 0.0 if math.isnan(x[t, o]) else total
            total_log_prob += constant[i]
            for o in range(p):
                total = 0.0
                for m in range(o + 1):
                    total += whiten[i, o, m] * surprise[m]
                total_log_prob -= 0.5 * total * total
            for j in range(k):
                total = now[j]
                for o in range(p):
                    total += gain[i, j, o] * surprise[o]
                filtered[t, j] = total
            for j in range(k):
                total = transition_offset[j]
                for m in range(k):
                    total += transition[j, m] * filtered[t, m]
                now[j] = total
        log_prob[sequence] = total_log_prob
    return predicted, filtered, log_prob


def simulate(transition: np.ndarray, offset: np.ndarray, first: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """z_0 = first, z_{t+1} = A z_t + b + noise_t: states (T, k) for noise (T − 1, k)."""
    shapes = {
        "transition": (transition, "k k"),
        "offset": (offset, "k"),
        "first": (first, "k"),
        "noise": (noise, "T k"),
    }
    check_sizes("simulate", shapes)
    return _simulate(transition, offset, first, noise)  # type: ignore[no-any-return]


@njit(**COMPILED)  # type: ignore[untyped-decorator]
def _simulate(transition: np.ndarray, offset: np.ndarray, first: np.ndarray, noise: np.ndarray) -> np.ndarray:
    k = first.shape[0]
    states = np.empty((noise.shape[0] + 1, k))
    states[0] = first
    for t in range(noise.shape[0]):
        for i in range(k):
            total = offset[i] + noise[t, i]
            for j in range(k):
                total += transition[i, j] * states[t, j]
            states[t + 1, i] = total
    return states
