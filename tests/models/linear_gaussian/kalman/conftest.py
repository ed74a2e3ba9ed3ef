"""A random state space, and the joint distribution of all its states and observations."""

from __future__ import annotations

import numpy as np
import pytest

from likely.models.linear_gaussian.kalman.recursion import System


def random_system(seed=0, k=2, p=2):
    rng = np.random.default_rng(seed)

    def covariance(size):
        root = rng.normal(size=(size, size + 1))
        return root @ root.T / size

    a = rng.normal(size=(k, k))
    a *= 0.9 / np.abs(np.linalg.eigvals(a)).max()
    sides = (rng.normal(size=k), covariance(k), rng.normal(size=(p, k)), rng.normal(size=p), covariance(p))
    return System(a, *sides, rng.normal(size=k), covariance(k))


class Joint:
    """The Gaussian of [z_0 … z_{T−1}, x_0 … x_{T−1}], and what it says given some of the x."""

    def __init__(self, system, steps):
        self.states, k = steps * len(system.transition), len(system.transition)
        move = np.eye(self.states)  # z = move⁻¹ (drift + noise)
        drift, noise = np.tile(system.transition_offset, steps), np.kron(np.eye(steps), system.transition_covariance)
        drift[:k], noise[:k, :k] = system.initial_mean, system.initial_covariance
        for t in range(1, steps):
            move[t * k : (t + 1) * k, (t - 1) * k : t * k] = -system.transition
        back = np.linalg.inv(move)
        look = np.kron(np.eye(steps), system.observation)
        both = np.vstack([back, look @ back])
        self.mean = both @ drift
        self.mean[self.states :] += np.tile(system.observation_offset, steps)
        self.covariance = both @ noise @ both.T
        self.covariance[self.states :, self.states :] += np.kron(np.eye(steps), system.observation_covariance)

    def given(self, x):
        """Mean and covariance of everything, given the values of x (T, p) that are not NaN."""
        known = np.concatenate([np.zeros(self.states, dtype=bool), ~np.isnan(x.ravel())])
        gain = np.linalg.solve(self.covariance[np.ix_(known, known)], self.covariance[known]).T
        away = x.ravel()[known[self.states :]] - self.mean[known]
        return self.mean + gain @ away, self.covariance - gain @ self.covariance[known]


@pytest.fixture
def make_system():
    return random_system


@pytest.fixture
def joint_of():
    return Joint


@pytest.fixture
def holes():
    """Two sequences of two columns, (T, p) and where they begin, with values missing in every way."""
    x = np.random.default_rng(5).normal(size=(9, 2))
    x[1, 0] = x[4, 1] = x[6] = x[8, 0] = np.nan
    return x, np.array([0, 5, 9])
