"""Ready-made state spaces for one series: what moves is known, and `fit` learns how much.

local level        z = [level]               level' = level + w
local trend        z = [level, slope]        level' = level + slope + w,   slope' = slope + w
seasonal           + season of period s      season' = −(sum of the last s − 1 seasons) + w
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import SpecError

__all__ = ["local_level", "local_trend", "seasonal"]


def local_level() -> dict[str, Any]:
    """The arguments of a random walk in noise.

    >>> local_level()["observation"]
    ((1.0,),)
    """
    return _arguments(np.eye(1), np.ones(1), np.ones(1))


def local_trend() -> dict[str, Any]:
    """The arguments of a level with a slope.

    >>> local_trend()["observation"]
    ((1.0, 0.0),)
    """
    return _arguments(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0]), np.array([1.0, 0.01]))


def seasonal(period: int, trend: bool = True) -> dict[str, Any]:
    """The arguments of a level, with a slope if `trend`, and a season.

    >>> seasonal(4, trend=False)["transition"][1]
    (0.0, -1.0, -1.0, -1.0)
    """
    if not isinstance(period, int | np.integer) or isinstance(period, bool) or period < 2:
        raise SpecError(f"KalmanFilter.seasonal(period={period!r}): period must be an integer above 1.")
    base = local_trend() if trend else local_level()
    size = len(base["transition"])
    transition = np.zeros((size + period - 1, size + period - 1))
    transition[:size, :size] = base["transition"]
    transition[size, size:] = -1.0
    transition[size + 1 :, size:-1] = np.eye(period - 2)
    seen, noise = np.zeros(len(transition)), np.zeros(len(transition))
    seen[[0, size]] = 1.0
    noise[:size], noise[size] = base["transition_covariance"], 0.1
    return _arguments(transition, seen, noise)


def _arguments(transition: np.ndarray, seen: np.ndarray, noise: np.ndarray) -> dict[str, Any]:
    return {
        "transition": tuple(map(tuple, transition.tolist())),
        "observation": (tuple(seen.tolist()),),
        "transition_covariance": tuple(noise.tolist()),
        "observation_covariance": 1.0,
        "initial_mean": 0.0,
        "initial_covariance": "diffuse",
        "covariance": "diagonal",
        "learn": ("transition_covariance", "observation_covariance"),
    }
