"""The answers of a Kalman filter as distributions: of states, of what is seen, and of what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch.distributions import MultivariateNormal

from ....data.rows import Ragged
from .recursion import Filtered, System
from .smoother import scale_trils

__all__ = ["Forecast", "ahead", "last_state", "normals", "pairs", "seen", "seen_covariance", "step_ahead"]


@dataclass(frozen=True)
class Forecast:
    """What comes next: the distribution of each future step, and its central interval of probability `level`.

    >>> one = MultivariateNormal(torch.zeros(3, 1).double(), torch.eye(1).double())
    >>> Forecast(one, level=0.95).upper.round(2).ravel().tolist()
    [1.96, 1.96, 1.96]
    """

    distribution: MultivariateNormal
    """One normal distribution of x for each step: batch (steps,), event (p,)."""
    level: float = 0.9

    @property
    def mean(self) -> np.ndarray:
        """(steps, p)"""
        return self.distribution.mean.numpy()

    @property
    def lower(self) -> np.ndarray:
        """(steps, p)"""
        return self.mean - self._width()

    @property
    def upper(self) -> np.ndarray:
        """(steps, p)"""
        return self.mean + self._width()

    def _width(self) -> np.ndarray:
        deviation = self.distribution.variance.sqrt().numpy()
        return float(ndtri((1 + self.level) / 2)) * deviation


def pairs(sequences: Ragged, means: np.ndarray, covariances: np.ndarray) -> Any:
    """(means, covariances); a list of such pairs if X was a list."""
    if not sequences.listed:
        return means, covariances
    return list(zip(sequences.parted(means), sequences.parted(covariances), strict=True))


def normals(sequences: Ragged, means: np.ndarray, row: np.ndarray, covariances: np.ndarray) -> Any:
    """A normal distribution of each step, whose covariance is that `row`; a list of such if X was a list."""
    roots = scale_trils(covariances)
    if not sequences.listed:
        return _normal(means, roots[row])
    return [_normal(m, roots[r]) for m, r in zip(sequences.parted(means), sequences.parted(row), strict=True)]


def _normal(mean: np.ndarray, root: np.ndarray) -> MultivariateNormal:
    loc, scale_tril = torch.from_numpy(mean), torch.from_numpy(root)
    return MultivariateNormal(loc, scale_tril=scale_tril, validate_args=False)  # a root may be singular


def seen(system: System, states: np.ndarray) -> np.ndarray:
    """E[x] for these states."""
    return states @ system.observation.T + system.observation_offset


def seen_covariance(system: System, covariances: np.ndarray) -> np.ndarray:
    """Cov(x) for states with these covariances."""
    spread = system.observation @ covariances @ system.observation.T + system.observation_covariance
    return np.ascontiguousarray((spread + spread.mT) / 2)


def ahead(system: System, filtered: Filtered, last: int, steps: int) -> MultivariateNormal:
    """The distributions of x in the steps after row `last`."""
    mean, covariance = last_state(filtered, last)
    means, covariances = np.empty((steps, len(mean))), np.empty((steps, len(mean), len(mean)))
    for step in range(steps):
        mean, covariance = step_ahead(system, mean, covariance)
        means[step], covariances[step] = mean, covariance
    return _normal(seen(system, means), scale_trils(seen_covariance(system, covariances)))


def last_state(filtered: Filtered, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the state at this row, given the rows up to it."""
    return filtered.means[place], filtered.gains.filtered[filtered.gains.step[place]]


def step_ahead(system: System, mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the state one step later."""
    spread = system.transition @ covariance @ system.transition.T + system.transition_covariance
    return system.transition @ mean + system.transition_offset, (spread + spread.T) / 2
