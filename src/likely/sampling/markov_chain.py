"""Finite Markov chains: what a transition matrix says of where the chain goes.

    P(X_{t+1} = j | X_t = i) = Pᵢⱼ        stationary π = πP        reversible πᵢPᵢⱼ = πⱼPⱼᵢ

Classes, periods and recurrence follow from which entries are zero, so they are exact; the stationary distribution is
found without a subtraction, so each of its entries is, to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from ..core.doors import check_sizes
from ..core.errors import DataError
from ..core.random import seed_of

__all__ = ["MarkovChain"]


class MarkovChain:
    """A chain on the states 0 … n−1 with the transition matrix P: row i is the distribution of what follows i.

    >>> weather = MarkovChain([[0.9, 0.1], [0.5, 0.5]])
    >>> weather.stationary().round(4)
    array([0.8333, 0.1667])
    >>> weather.is_irreducible, weather.is_aperiodic, weather.is_reversible()
    (True, True, True)
    """

    def __init__(self, transition: ArrayLike) -> None:
        self.transition = _checked(transition)
        steps = csr_array(self.transition > 0)
        _, label = connected_components(steps, directed=True, connection="strong")
        leaves = {int(label[i]) for i, j in zip(*steps.nonzero(), strict=True) if label[i] != label[j]}
        classes = [tuple(int(i) for i in np.flatnonzero(label == component)) for component in np.unique(label)]
        self._classes = sorted(classes)
        self._closed = [states for states in self._classes if int(label[states[0]]) not in leaves]

    def __len__(self) -> int:
        return len(self.transition)

    def __repr__(self) -> str:
        return f"MarkovChain({len(self)} states, {len(self._classes)} classes, {len(self._closed)} recurrent)"

    # --- structure ----------------------------------------------------------------------------------------------
    def classes(self) -> list[tuple[int, ...]]:
        """The communicating classes: states that reach each other."""
        return list(self._classes)

    @property
    def recurrent(self) -> list[int]:
        """The states that the chain returns to with certainty: those of the classes it cannot leave."""
        return sorted(state for states in self._closed for state in states)

    @property
    def transient(self) -> list[int]:
        """The states that the chain leaves for ever at some time."""
        return sorted(set(range(len(self))) - set(self.recurrent))

    @property
    def is_irreducible(self) -> bool:
        """Whether every state reaches every other."""
        return len(self._classes) == 1

    def period(self, state: int) -> int:
        """gcd of the lengths of all ways from the state back to it; 0 if there is no way back."""
        members = np.array(self._class_of(state))
        inside = self.transition[np.ix_(members, members)] > 0
        start = int(np.flatnonzero(members == state)[0])
        level = shortest_path(csr_array(inside), unweighted=True, indices=start).astype(int)
        here, there = np.nonzero(inside)
        return int(np.gcd.reduce(level[here] + 1 - level[there], initial=0))

    @property
    def is_aperiodic(self) -> bool:
        """Whether every state that can be returned to has period 1."""
        return all(self.period(states[0]) <= 1 for states in self._classes)

    # --- the long run -------------------------------------------------------------------------------------------
    def stationary(self, within: int | None = None) -> np.ndarray:
        """The distribution π = πP.

        A chain with several recurrent classes has one for each and all their mixtures; `within` names a state of the
        class that is meant.

        >>> MarkovChain([[1.0, 0.0], [0.0, 1.0]]).stationary(within=1)
        array([0., 1.])
        """
        if within is None and len(self._closed) > 1:
            named = ", ".join(_listed(states) for states in self._closed)
            raise DataError(
                f"The chain has {len(self._closed)} recurrent classes ({named}), each with its own stationary "
                f"distribution; name a state of one: stationary(within={self._closed[1][0]})."
            )
        states = self._closed[0] if within is None else self._class_of(within)
        if states not in self._closed:
            raise DataError(f"State {within} is transient, so no stationary distribution has mass on its class.")
        out = np.zeros(len(self))
        out[list(states)] = _gth(self.transition[np.ix_(states, states)])
        return out

    def is_reversible(self, tolerance: float = 1e-10) -> bool:
        """Detailed balance, πᵢPᵢⱼ = πⱼPⱼᵢ, in every recurrent class: run backwards the chain looks the same."""
        flows = [self.stationary(states[0])[:, None] * self.transition for states in self._closed]
        return all(bool(np.abs(flow - flow.T).max() <= tolerance) for flow in flows)

    def after(self, steps: int, start: int | ArrayLike) -> np.ndarray:
        """The distribution after `steps` steps from a state or a distribution of states."""
        return self._start(start) @ np.linalg.matrix_power(self.transition, steps)

    def total_variation(self, steps: int, start: int | ArrayLike | None = None) -> float:
        """½ Σⱼ |P(X_t = j) − πⱼ| after t steps; from the worst state without a start."""
        pi = self.stationary()
        if start is None:
            return self._worst(np.linalg.matrix_power(self.transition, steps), pi)
        return float(0.5 * np.abs(self.after(steps, start) - pi).sum())

    def mixing_time(self, epsilon: float = 0.25) -> float:
        """The first t at which the total variation from every start is ≤ ε; inf if there is none.

        >>> MarkovChain([[0.9, 0.1], [0.5, 0.5]]).mixing_time()
        2
        """
        if not 0 < epsilon < 1:
            raise DataError(f"epsilon must lie between 0 and 1; found {epsilon!r}.")
        if len(self._closed) > 1 or self.period(self._closed[0][0]) != 1:
            return math.inf
        pi = self.stationary()
        if self._worst(np.eye(len(self)), pi) <= epsilon:
            return 0
        powers = [self.transition]  # P, P², P⁴, …: the distance never rises, so the first t is found by bisection
        while self._worst(powers[-1], pi) > epsilon:
            powers.append(powers[-1] @ powers[-1])
            if len(powers) > 1000:
                return math.inf
        time, reached = 0, np.eye(len(self))
        for exponent in reversed(range(len(powers) - 1)):
            further = reached @ powers[exponent]
            if self._worst(further, pi) > epsilon:
                time, reached = time + 2**exponent, further
        return time + 1

    @property
    def spectral_gap(self) -> float:
        """1 − |λ₂|, λ₂ the largest eigenvalue in size beside the 1 of π: the rate at which the start is forgotten."""
        values = np.linalg.eigvals(self.transition)
        others = np.delete(values, np.abs(values - 1).argmin())
        return float(1 - np.abs(others).max()) if len(others) else 1.0

    def hitting_times(self, target: int | Sequence[int]) -> np.ndarray:
        """The expected steps from each state until `target` (a state or several) is met; inf where it may never be.

        >>> MarkovChain([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]).hitting_times(2)
        array([6., 4., 0.])
        """
        chosen = [target] if isinstance(target, int | np.integer) else list(target)
        goal = np.zeros(len(self), dtype=bool)
        goal[[self._state(state) for state in chosen]] = True
        onward = (self.transition > 0) & ~goal[:, None]
        lost = ~_reaching(onward, goal)
        certain = ~_reaching(onward, lost) & ~goal
        times = np.where(goal, 0.0, np.inf)
        stay = self.transition[np.ix_(certain, certain)]
        times[certain] = np.linalg.solve(np.eye(len(stay)) - stay, np.ones(len(stay)))
        return times

    # --- paths --------------------------------------------------------------------------------------------------
    def sample(
        self, n_steps: int, start: int | ArrayLike | None = None, random_state: Any = None, chains: int | None = None
    ) -> np.ndarray:
        """A path of n_steps + 1 states, the start first; (chains, n_steps + 1) of them if `chains` is given.

        `start` is a state or a distribution of states; the stationary one by default.

        >>> MarkovChain([[0.0, 1.0], [1.0, 0.0]]).sample(4, start=0)
        array([0, 1, 0, 1, 0])
        """
        from .compiled.paths import walk  # compiled, and slow to import

        if not isinstance(n_steps, int) or n_steps < 0 or (chains is not None and chains < 1):
            raise DataError(f"n_steps must be 0 or more and chains 1 or more; found {n_steps!r} and {chains!r}.")
        random = np.random.default_rng(seed_of(random_state))
        first = self.stationary() if start is None else self._start(start)
        check_sizes("sample", {"start": (first, "K"), "transition": (self.transition, "K K")})
        uniform = random.random((chains or 1, n_steps + 1))
        paths = walk(_cumulative(first[None])[0], _cumulative(self.transition), uniform)
        return paths[0] if chains is None else paths

    # --- helpers ------------------------------------------------------------------------------------------------
    def _class_of(self, state: int) -> tuple[int, ...]:
        index = self._state(state)
        return next(states for states in self._classes if index in states)

    def _state(self, state: int) -> int:
        if not isinstance(state, int | np.integer) or not 0 <= state < len(self):
            raise DataError(f"state must be an integer from 0 to {len(self) - 1}; found {state!r}.")
        return int(state)

    def _start(self, start: int | ArrayLike) -> np.ndarray:
        if isinstance(start, int | np.integer):
            return np.eye(len(self))[self._state(int(start))]
        given = np.asarray(start, dtype=np.float64)
        if given.shape != (len(self),) or (given < 0).any() or not math.isclose(given.sum(), 1, abs_tol=1e-8):
            raise DataError(f"start must be a state or {len(self)} probabilities that sum to 1; found {start!r}.")
        return given / given.sum()

    @staticmethod
    def _worst(power: np.ndarray, pi: np.ndarray) -> float:
        return float(0.5 * np.abs(power - pi).sum(1).max())


def _checked(transition: ArrayLike) -> np.ndarray:
    """A square matrix of distributions; an error names the first row that is not one."""
    matrix = np.array(transition, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise DataError(f"transition must be a square matrix (n, n); found shape {matrix.shape}.")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        row, column = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))[0]
        raise DataError(f"transition has the value {matrix[row, column]:g} at row {row}, column {column}; must be ≥ 0.")
    sums = matrix.sum(1)
    wrong = np.flatnonzero(np.abs(sums - 1) > 1e-8)
    if len(wrong):
        row = wrong[0]
        if sums[row] == 0:
            raise DataError(
                f"transition: row {row} is all zero, so state {row} leads nowhere; an absorbing state has a 1 on the "
                "diagonal."
            )
        raise DataError(f"transition: row {row} sums to {sums[row]:g}; each row is a distribution and sums to 1.")
    return matrix / sums[:, None]


def _gth(matrix: np.ndarray) -> np.ndarray:
    """π of an irreducible chain by eliminating its states (Grassmann, Taksar, Heyman): sums of positives only."""
    left = matrix.copy()
    for k in range(len(left) - 1, 0, -1):
        left[:k, k] /= left[k, :k].sum()
        left[:k, :k] += np.outer(left[:k, k], left[k, :k])
    pi = np.ones(len(left))
    for k in range(1, len(left)):
        pi[k] = pi[:k] @ left[:k, k]
    return pi / pi.sum()


def _reaching(steps: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The states from which `goal` can be reached, itself included."""
    reaching = goal
    while True:
        more = reaching | (steps @ reaching)
        if (more == reaching).all():
            return reaching
        reaching = more


def _cumulative(rows: np.ndarray) -> np.ndarray:
    """Cumulative sums whose end is beyond any uniform number, from the last possible state on."""
    sums = np.cumsum(rows, 1)
    last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
    return np.where(np.arange(rows.shape[1]) >= last[:, None], 2.0, sums)


def _listed(states: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, states[:5])) + (", …" if len(states) > 5 else "") + "}"
