"""EM for the matrices of a linear-Gaussian state-space model.

    z_{t+1} = A z_t + b + w,  w ~ N(0, Q)        x_t = C z_t + d + v,  v ~ N(0, R)

The M-step is two least-squares fits. It is written as a correction of the matrices at hand, from the moments of the
disturbances w and v given the data, so that nothing large cancels where the states are far from 0:

    [A b] ← [A b] + E[w z̃ᵀ] E[z̃ z̃ᵀ]⁻¹,  z̃ = [z, 1]        Q ← mean of E[w wᵀ] after that correction

A missing value of x is hidden too: its v is what R and the v of the same time say of it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ....core import distributed
from ....data.rows import Ragged
from ....inference.latent.latent import Latent, Params
from .density import series_log_prob
from .free import FreeMatrices
from .recursion import Observed, System, observe, run_filter
from .smoother import Smoothed, run_smoother
from .start import first_systems

__all__ = ["StateSpace", "moments"]

Moments = dict[str, np.ndarray]


class StateSpace(Latent):
    """Sequences and what is to be learned from them. Under `torchrun`, each process has its part of the sequences."""

    def __init__(
        self,
        data: Observed,
        given: dict[str, np.ndarray | None],
        learn: frozenset[str],
        k: int,
        diagonal: bool,
        weight: np.ndarray | None = None,
    ) -> None:
        self.data, self.given, self.learn, self.k, self.diagonal = data, given, learn, k, diagonal
        weight = np.ones(len(data.rows)) if weight is None else weight  # of each sequence
        self.count = float(weight @ np.diff(data.starts))
        part = distributed.shard(len(data.rows))
        self.weight = weight[part]
        self.all_weights = None if (weight == 1).all() else torch.from_numpy(weight)
        self.own = observe(data.rows[part])
        times = np.repeat(weight, np.diff(data.starts))  # of each step
        self.floor = np.sqrt(np.maximum(1e-9 * _spread(data.x, times), 1e-200))

    def start(self, seeds: list[int]) -> Params:
        weight = None if self.all_weights is None else self.all_weights.numpy()
        return _stacked(first_systems(self.data, self.given, self.learn, self.k, seeds, weight))

    # --- as a density -------------------------------------------------------------------------------------------
    differentiable = True

    @property
    def width(self) -> int:
        return int(len(self.data.x) * (self.k + self.data.x.shape[1]) ** 2 // max(1, len(self.data.rows)))

    @cached_property
    def _free(self) -> FreeMatrices:
        first = {name: value[0] for name, value in self.start([0]).items()}
        return FreeMatrices(first, self.learn, diagonal=self.diagonal)

    def to_free(self, params: Params) -> Params:
        return self._free.to_free(params)

    def from_free(self, free: Params) -> Params:
        return self._free.from_free(free)

    def rows(self) -> tuple[Ragged, Tensor | None]:
        return self.data.rows, self.all_weights

    def row_log_prob(self, params: Params, x: Ragged) -> Tensor:
        return series_log_prob(params, x)

    # --- what EM asks -------------------------------------------------------------------------------------------
    def expect(self, params: Params) -> tuple[Params, Tensor]:
        expected = [moments(self.own, system, self.weight) for system in _each(params)]
        sums, log_prob = zip(*expected, strict=True)
        statistics = {name: torch.from_numpy(np.stack([own[name] for own in sums])) for name in sums[0]}
        return statistics, torch.tensor(log_prob, dtype=torch.float64)

    def maximise(self, params: Params, statistics: Params) -> Params:
        by_system = [
            {name: value[s].numpy() for name, value in statistics.items()} for s in range(len(params["transition"]))
        ]
        return _stacked([self.improved(system, sums) for system, sums in zip(_each(params), by_system, strict=True)])

    def improved(self, system: System, sums: Moments) -> System:
        """The best matrices among those to learn, given expected moments."""
        new = dict(system._asdict())
        for side in ("transition", "observation"):
            change, rest = _corrected(
                sums[f"{side}_noise"],
                sums[f"{side}_cross"],
                sums[f"{side}_states"],
                side in self.learn,
                f"{side}_offset" in self.learn,
            )
            new[side] = new[side] + change[:, :-1]
            new[f"{side}_offset"] = new[f"{side}_offset"] + change[:, -1]
            name = f"{side}_covariance"
            if name in self.learn and sums[f"{side}_count"] > 0:
                floor = self.floor if side == "observation" else np.zeros(self.k)
                new[name] = self._noise(rest / sums[f"{side}_count"], new[name], floor)
        away = sums["initial_away"] / sums["initial_count"]
        square = sums["initial_square"] / sums["initial_count"]
        if "initial_mean" in self.learn:
            new["initial_mean"] = new["initial_mean"] + away
            square = square - np.outer(away, away)
        if "initial_covariance" in self.learn:
            new["initial_covariance"] = (square + square.T) / 2
        return System(**new)

    def _noise(self, mean: np.ndarray, before: np.ndarray, floor: np.ndarray) -> np.ndarray:
        """The covariance that fits best: 0 where it was 0, with eigenvalues (in units of `floor`) of at least 1."""
        alive = np.diag(before) > 0
        mean = np.where(np.outer(alive, alive), (mean + mean.T) / 2, 0.0)
        if self.diagonal:
            return np.diag(np.where(alive, np.maximum(np.diag(mean), floor**2), 0.0))
        if not floor.any() or not alive.any():
            return mean
        unit = floor[alive]
        values, vectors = np.linalg.eigh(mean[np.ix_(alive, alive)] / np.outer(unit, unit))
        if values[0] < 1:
            held = (vectors * np.maximum(values, 1.0)) @ vectors.T * np.outer(unit, unit)
            mean[np.ix_(alive, alive)] = (held + held.T) / 2
        return mean


def moments(data: Observed, system: System, weight: np.ndarray | None = None) -> tuple[Moments, float]:
    """Sums over the sequences, with their weights (n,), of the moments of w, v and z given x, and of log p(x)."""
    p, k = system.observation.shape
    times = np.ones(len(data.rows)) if weight is None else weight
    sums = {
        **{f"transition_{name}": np.zeros(shape) for name, shape in _shapes(k, k).items()},
        **{f"observation_{name}": np.zeros(shape) for name, shape in _shapes(p, k).items()},
        "initial_away": np.zeros(k),
        "initial_square": np.zeros((k, k)),
        "initial_count": np.array(times.sum()),
    }
    if len(data.x) == 0:
        return sums, 0.0
    filtered = run_filter(data, system)
    smooth = run_smoother(data, system, filtered)
    step_weight = np.repeat(times, np.diff(data.starts))  # of each step
    weights = np.bincount(smooth.row, step_weight, minlength=len(smooth.covariance))  # of each covariance
    states = np.column_stack([smooth.means, np.ones(len(data.x))])  # z̃
    first = data.starts[:-1]
    away = smooth.means[first] - system.initial_mean
    sums["initial_away"] += times @ away
    sums["initial_square"] += (away.T * times) @ away + np.tensordot(times, smooth.covariance[smooth.row[first]], 1)
    _add_transitions(sums, data, system, smooth, states, step_weight, weights)
    _add_observations(sums, data, system, filtered.gains.pattern[smooth.step], smooth, states, step_weight, weights)
    return sums, float(times @ filtered.log_prob)


def _add_transitions(
    sums: Moments,
    data: Observed,
    system: System,
    smooth: Smoothed,
    states: np.ndarray,
    step_weight: np.ndarray,
    weight: np.ndarray,
) -> None:
    """w = z_{t+1} − A z_t − b. With D = 1 − AG: Cov(w) = D V_{t+1} Dᵀ + A U Aᵀ, Cov(w, z_t) = V_{t+1} Gᵀ − A V_t."""
    inner = np.ones(len(data.x), dtype=bool)
    inner[data.starts[1:] - 1] = False
    here = np.flatnonzero(inner)
    if len(here) == 0:
        return
    a = system.transition
    noise = smooth.means[here + 1] - smooth.means[here] @ a.T - system.transition_offset
    rows = np.flatnonzero((smooth.after >= 0) & (weight > 0))
    times = weight[rows, None, None]
    back, rest = smooth.back[smooth.step[rows]], smooth.rest[smooth.step[rows]]
    now, after = smooth.covariance[rows], smooth.covariance[smooth.after[rows]]
    left = np.eye(len(a)) - a @ back
    own = noise.T * step_weight[here]
    sums["transition_noise"] += own @ noise + (times * (left @ after @ left.mT)).sum(0)
    sums["transition_noise"] += a @ (times * rest).sum(0) @ a.T
    sums["transition_cross"] += own @ states[here]
    sums["transition_cross"][:, :-1] += (times * (after @ back.mT)).sum(0) - a @ (times * now).sum(0)
    sums["transition_states"] += (states[here].T * step_weight[here]) @ states[here]
    sums["transition_states"][:-1, :-1] += (times * now).sum(0)
    sums["transition_count"] += step_weight[here].sum()


def _add_observations(
    sums: Moments,
    data: Observed,
    system: System,
    pattern: np.ndarray,
    smooth: Smoothed,
    states: np.ndarray,
    step_weight: np.ndarray,
    weight: np.ndarray,
) -> None:
    """v = x − C z − d, of the columns seen; F v fills in the others, which keep the covariance H."""
    c, r = system.observation, system.observation_covariance
    expected = data.x - smooth.means @ c.T - system.observation_offset
    order = np.argsort(data.pattern, kind="stable")
    ends = np.searchsorted(data.pattern[order], np.arange(len(data.seen) + 1))
    for kind, seen in enumerate(data.seen):
        rows = order[ends[kind] : ends[kind + 1]] if len(data.seen) > 1 else slice(None)
        here = states[rows]
        if not seen.any() or len(here) == 0:
            continue
        fill = np.zeros((len(r), int(seen.sum())))
        fill[seen] = np.eye(fill.shape[1])
        hidden = np.zeros_like(r)
        if not seen.all():
            fill[~seen] = np.linalg.lstsq(r[np.ix_(seen, seen)], r[np.ix_(seen, ~seen)], rcond=None)[0].T
            hidden[np.ix_(~seen, ~seen)] = r[np.ix_(~seen, ~seen)] - fill[~seen] @ r[np.ix_(seen, ~seen)]
        noise, times = expected[rows][:, seen] @ fill.T, step_weight[rows]
        own, weighted = pattern == kind, noise.T * times
        spread = np.tensordot(weight[own], smooth.covariance[own], 1)
        reach = fill @ c[seen]
        sums["observation_noise"] += weighted @ noise + reach @ spread @ reach.T + times.sum() * hidden
        sums["observation_cross"] += weighted @ here
        sums["observation_cross"][:, :-1] -= reach @ spread
        sums["observation_states"] += (here.T * times) @ here
        sums["observation_states"][:-1, :-1] += spread
        sums["observation_count"] += times.sum()


def _corrected(
    noise: np.ndarray, cross: np.ndarray, states: np.ndarray, matrix: bool, offset: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The correction of [A b] (zero where not learned), and E[w wᵀ] after it."""
    change = np.zeros_like(cross)
    free = np.array([matrix] * (cross.shape[1] - 1) + [offset])
    if not free.any():
        return change, noise
    scale = np.sqrt(np.maximum(np.diag(states)[free], 1e-300))  # states may be of any size; so may their moments
    part = states[np.ix_(free, free)] / np.outer(scale, scale)
    change[:, free] = np.linalg.lstsq(part, (cross[:, free] / scale).T, rcond=1e-13)[0].T / scale
    return change, noise - change @ cross.T - cross @ change.T + change @ states @ change.T


def _shapes(rows: int, k: int) -> dict[str, tuple[int, ...]]:
    return {"noise": (rows, rows), "cross": (rows, k + 1), "states": (k + 1, k + 1), "count": ()}


def _spread(x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The variance of each column, and a little of its square for those that never change."""
    known = times @ ~np.isnan(x)
    known = np.where(known > 0, known, 1.0)
    mean = times @ np.nan_to_num(x) / known
    variance = times @ np.nan_to_num((x - mean) ** 2) / known + 1e-6 * mean**2
    return np.where(variance > 0, variance, 1.0)


def _stacked(systems: list[System]) -> Params:
    return {name: torch.from_numpy(np.stack([getattr(s, name) for s in systems])) for name in System._fields}


def _each(params: Params) -> list[System]:
    count = len(params["transition"])
    return [System(*(np.ascontiguousarray(params[name][s].numpy()) for name in System._fields)) for s in range(count)]
