"""Where EM for a Kalman filter begins.

Matrices that are given are kept. Unknown dynamics come from the data: the leading principal components of short windows
(x_t, x_{t+1}, …) stand in for the states, and regressions from one to the next and to x_t give A, Q, C and R. Where the
dynamics are known and only variances are not, their sizes are found by descent: EM is slow to change a
variance tenfold.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from ....data.rows import Ragged
from .recursion import Observed, System, observe, run_filter

__all__ = ["first_systems"]

BOUNDS = (-20.0, 3.0)
"""Logarithms of the smallest and largest variance that is tried, as fractions of that of the data."""

MOST = 10_000
"""So many rows are enough to find sizes to begin with."""


def first_systems(
    data: Observed,
    given: dict[str, np.ndarray | None],
    learn: frozenset[str],
    k: int,
    seeds: list[int],
    weight: np.ndarray | None = None,
) -> list[System]:
    """One system for each seed: the first is the guess itself, the others are disturbed versions of it.

    Series count as often as their `weight` (n,) says: EM begins where it would if they were repeated.

    >>> from likely.models.linear_gaussian.kalman.recursion import observe
    >>> data = observe(Ragged.of([[[1.0], [2.0], [4.0]]]))
    >>> first_systems(data, dict.fromkeys(System._fields), frozenset(), 2, [0])[0].transition
    array([[1., 0.],
           [0., 1.]])
    """
    system = _defaults(data, given, k)
    weight = np.ones(len(data.rows)) if weight is None else weight
    if {"transition", "observation"} & learn:
        guess = _from_windows(data, weight, given, k, np.random.default_rng(seeds[0]))
        taken = {name: value for name, value in guess.items() if name in learn and given[name] is None}
        system = system._replace(**taken)
    elif {"transition_covariance", "observation_covariance"} & learn:
        system = _best_size(data, weight, system, learn)
    return [system, *(_disturbed(system, learn, seed) for seed in seeds[1:])]


def _defaults(data: Observed, given: dict[str, np.ndarray | None], k: int) -> System:
    p = data.x.shape[1]
    plain = System(
        transition=np.eye(k),
        transition_offset=np.zeros(k),
        transition_covariance=np.eye(k),
        observation=np.eye(p, k),
        observation_offset=np.zeros(p),
        observation_covariance=np.eye(p),
        initial_mean=np.zeros(k),
        initial_covariance=np.eye(k),
    )
    return System(**{name: getattr(plain, name) if value is None else value for name, value in given.items()})


def _from_windows(
    data: Observed, weight: np.ndarray, given: dict[str, np.ndarray | None], k: int, random: np.random.Generator
) -> dict[str, np.ndarray]:
    """All matrices, from states that are guessed."""
    p = data.x.shape[1]
    known, times = ~np.isnan(data.x), np.repeat(weight, np.diff(data.starts))  # of each step
    count = times @ known
    count = np.where(count > 0, count, 1.0)
    centre = times @ np.where(known, data.x, 0.0) / count
    x = np.where(known, data.x - centre, 0.0)
    c, d = given["observation"], given["observation_offset"]
    if c is not None:
        offset = np.zeros(p) if d is None else d
        states, here = np.where(known, data.x - offset, 0.0) @ np.linalg.pinv(c).T, np.arange(len(x))
    else:
        states, here = _windowed(data, x, times, k, random)
    times = times[here]
    last = np.isin(here, data.starts[1:] - 1) | (np.append(np.diff(here), 0) != 1)
    now, after, moves = states[:-1][~last[:-1]], states[1:][~last[:-1]], times[:-1][~last[:-1]]
    size = max(float(np.average((states**2).mean(1), weights=times)), 1e-12)
    a = given["transition"]
    if a is None:
        a = _regression(now, after, moves, size) if len(now) else 0.5 * np.eye(k)
        a = a * min(1.0, 0.99 / max(np.abs(np.linalg.eigvals(a)).max(), 1e-12))
    rest = after - now @ a.T
    variance = np.repeat(weight, np.diff(data.starts)) @ x**2 / count
    variance = np.where(variance > 0, variance, 1.0)
    if c is None:
        c = _regression(states, x[here], times, size)
        if given["transition"] is not None:  # the states have another basis: any start is as good
            c = random.normal(size=(p, k)) * np.sqrt(variance[:, None] / k)
    error = np.average((x[here] - states @ c.T) ** 2, axis=0, weights=times)
    change = np.average(rest**2, axis=0, weights=moves) if len(rest) else np.zeros(k)
    return {
        "transition": a,
        "transition_covariance": np.diag(change) + 0.1 * size * np.eye(k),
        "observation": c,
        "observation_offset": centre if d is None else d,
        "observation_covariance": np.diag(np.minimum(error, variance) + 0.1 * variance),
        "initial_mean": np.zeros(k),
        "initial_covariance": size * np.eye(k),
    }


def _windowed(
    data: Observed, x: np.ndarray, times: np.ndarray, k: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Leading components of windows, with variance 1, and the times at which the windows begin."""
    p = x.shape[1]
    lengths = np.diff(data.starts)
    width = max(1, min(-(-2 * k // p), int(lengths.max()) - 1))
    here = np.concatenate([np.arange(a, b - width + 1) for a, b in zip(data.starts, data.starts[1:], strict=False)])
    here = here.astype(np.int64)
    windows = np.concatenate([x[here + lag] for lag in range(width)], axis=1)
    values, vectors = np.linalg.eigh((windows.T * times[here]) @ windows / times[here].sum())
    leading = np.flatnonzero(values > 1e-12 * max(values[-1], 1e-300))[::-1][:k]
    scores = windows @ vectors[:, leading] / np.sqrt(values[leading])
    return np.column_stack([scores, random.normal(size=(len(here), k - len(leading)))]), here


def _regression(inputs: np.ndarray, outputs: np.ndarray, times: np.ndarray, size: float) -> np.ndarray:
    """outputs ≈ inputs · Mᵀ, with a little shrinkage."""
    square = (inputs.T * times) @ inputs + 1e-6 * size * times.sum() * np.eye(inputs.shape[1])
    return np.linalg.solve(square, (inputs.T * times) @ outputs).T


def _best_size(data: Observed, weight: np.ndarray, system: System, learn: frozenset[str]) -> System:
    """The most likely sizes of the variances that are learned, or as given if those are better."""
    names = ("transition_covariance", "observation_covariance")
    noisy = [(n, j) for n in names if n in learn for j in np.flatnonzero(np.diag(getattr(system, n)))]
    if not noisy:
        return system
    times = np.repeat(weight, np.diff(data.starts))
    variance = _variance(data.x, times) or 1.0
    before = np.log([getattr(system, name)[j, j] / variance for name, j in noisy])
    end = min(len(data.x), MOST)
    part = observe(Ragged.from_numpy(data.x[:end], np.append(data.starts[data.starts < end], end)))
    weight, count = weight[: len(part.rows)], times[:end].sum()

    def sized(sizes: np.ndarray) -> System:
        scales = {name: np.ones(len(getattr(system, name))) for name in names}
        for (name, j), size, old in zip(noisy, sizes, before, strict=True):
            scales[name][j] = np.exp((size - old) / 2)
        return system._replace(**{name: getattr(system, name) * np.outer(s, s) for name, s in scales.items()})

    def cost(sizes: np.ndarray) -> float:
        return -float(weight @ run_filter(part, sized(sizes)).log_prob) / count

    level = before - before.max()
    begins = [(level + np.log(fraction)).clip(*BOUNDS) for fraction in (1e-1, 1e-3)]
    options = {"method": "L-BFGS-B", "bounds": [BOUNDS] * len(noisy), "options": {"ftol": 1e-9, "eps": 1e-3}}
    origin = cost(begins[0])  # the search ends by a fraction of the cost, which the unit of x shifts
    optima = [minimize(lambda sizes: cost(sizes) - origin, begin, **options) for begin in begins]
    best = min(optima, key=lambda optimum: optimum.fun)
    known = before.clip(*BOUNDS)  # variances of 1 beside x in thousands have no density that rounding leaves
    return sized(best.x if best.fun < cost(known) - origin else known)


def _variance(x: np.ndarray, times: np.ndarray) -> float:
    """Of all numbers that are known, whatever their column."""
    known = ~np.isnan(x)
    values, weights = x[known], np.broadcast_to(times[:, None], x.shape)[known]
    if not len(values):
        return 0.0
    return float(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))


def _disturbed(system: System, learn: frozenset[str], seed: int) -> System:
    random = np.random.default_rng(seed)
    changed = {}
    for name in sorted(learn & {"transition", "observation"}):
        value = getattr(system, name)
        changed[name] = value + random.normal(size=value.shape) * 0.5 * np.sqrt((value**2).mean())
        if name == "transition":
            changed[name] *= min(1.0, 0.99 / max(np.abs(np.linalg.eigvals(changed[name])).max(), 1e-12))
    for name in sorted(learn & {"transition_covariance", "observation_covariance"}):
        factor = np.exp(random.normal(size=len(getattr(system, name))))
        changed[name] = getattr(system, name) * np.sqrt(np.outer(factor, factor))
    return system._replace(**changed)
