"""New series of a linear-Gaussian state-space model, and what missing values of given ones may be.

    E[xₘ | x] = C_m E[z | x] + d_m + R_mo R_oo⁻¹ (xₒ − C_o E[z | x] − d_o)       (o: seen in the same step, m: missing)

A draw of the missing values is a new series, moved by what the known values say beyond those of the new one
(Matheron's rule, the simulation smoother of Durbin and Koopman).
"""

from __future__ import annotations

import numpy as np
import torch

from .forecast import seen
from .recursion import Observed, System, observe, run_filter, simulate
from .smoother import run_smoother, scale_trils

__all__ = ["draw_series", "expected_rows", "filled_rows"]


def draw_series(
    system: System, mean: np.ndarray, covariance: np.ndarray, shape: tuple[int, int], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(n, T, p) observations and (n, T, k) states, for a shape (n, T) and a first state of this mean and covariance."""
    count, steps = shape
    first, moving, seeing = (
        scale_trils(np.ascontiguousarray(matrix)[None])[0].T
        for matrix in (covariance, system.transition_covariance, system.observation_covariance)
    )
    starts = mean + random.normal(size=(count, len(mean))) @ first
    noise = random.normal(size=(count, steps - 1, len(mean))) @ moving
    paths = [simulate(system.transition, system.transition_offset, starts[i], noise[i]) for i in range(count)]
    states = np.stack(paths)
    rows = seen(system, states)
    return rows + random.normal(size=rows.shape) @ seeing, states


def expected_rows(data: Observed, system: System) -> np.ndarray:
    """x (T, p) with each missing value at its mean given all that is known of its series."""
    means = run_smoother(data, system, run_filter(data, system)).means
    expected, noise = seen(system, means), system.observation_covariance
    filled = np.where(np.isnan(data.x), expected, data.x)
    for kind, known in enumerate(data.seen):
        if known.all() or not known.any():
            continue
        rows = np.flatnonzero(data.pattern == kind)
        regression = np.linalg.lstsq(noise[np.ix_(known, known)], noise[np.ix_(known, ~known)], rcond=None)[0]
        filled[np.ix_(rows, ~known)] += (data.x[rows][:, known] - expected[rows][:, known]) @ regression
    return filled


def filled_rows(data: Observed, system: System, random: np.random.Generator) -> np.ndarray:
    """x (T, p) with each missing value drawn given all that is known of its series."""
    steps = np.diff(data.starts)
    mean, covariance = system.initial_mean, system.initial_covariance
    new = np.concatenate([draw_series(system, mean, covariance, (1, int(own)), random)[0][0] for own in steps])
    missing = np.isnan(data.x)
    partial = observe(data.rows.with_features(torch.from_numpy(np.where(missing, np.nan, new))))
    moved = new + expected_rows(data, system) - expected_rows(partial, system)
    return np.where(missing, moved, data.x)
