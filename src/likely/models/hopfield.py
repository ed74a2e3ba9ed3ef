"""The Hopfield net: patterns of ±1 stored as valleys of an energy, and found again from damaged copies.

    E(x) = −½ xᵀWx,   xᵢ ← sign Σⱼ Wᵢⱼ xⱼ,   W symmetric with Wᵢᵢ = 0

Changing one unit at a time never raises E, so recall always ends. Hebb's rule W = Σ ppᵀ/n keeps about 0.138 n random
patterns of n units; beyond that recall breaks down.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch

from ..core.declared import AMOUNT, COUNT, SYMMETRIC, Array, Arrays, Values
from ..core.draws import Refused
from ..core.errors import DataError, LikelyWarning, SpecError
from ..core.learned import Learned
from ..core.validation import as_rows, as_weights

__all__ = ["Hopfield"]

Order = Literal["asynchronous", "synchronous"]

RULES = ("hebb", "pseudoinverse")

TIE = 1e-9
"""A unit whose input is below this fraction of the largest possible one stays as it is: rounding must not move it."""


class Hopfield(Learned):
    """An associative memory of n units. `fit` takes patterns (m, n) of −1 and +1; booleans are read as such.

    `rule="hebb"` adds ppᵀ/n for each pattern; `rule="pseudoinverse"` projects on the span of the patterns, so that
    correlated ones are kept too, up to m < n/2 or so. Beside the patterns p their mirror images −p are valleys, and
    mixtures such as sign(p₁ + p₂ + p₃): recall may end in one of these.

    Learned: `weights_` (n, n), `load_` = m/n (for random patterns Hebb's rule needs load_ < 0.138), `n_patterns_`.

    >>> patterns = np.array([[1, 1, 1, 1, -1, -1, -1, -1], [1, -1, 1, -1, 1, -1, 1, -1]])
    >>> net = Hopfield().fit(patterns)
    >>> net.recall([[1, 1, 1, 1, -1, -1, -1, 1]])                           # the last unit was wrong
    array([[ 1,  1,  1,  1, -1, -1, -1, -1]])
    >>> net.energy([[1, 1, 1, 1, -1, -1, -1, 1]]) > net.energy(patterns[:1])
    array([ True])
    """

    _arrays: ClassVar[Arrays] = {"weights_": Array("D D", SYMMETRIC)}
    _values: ClassVar[Values] = {"n_patterns_": COUNT, "load_": AMOUNT}

    def __init__(self, rule: Literal["hebb", "pseudoinverse"] = "hebb", random_state: Any = None) -> None:
        self.rule = rule
        self.random_state = random_state

    log_prob = Refused("its energy is not normalised: Σ exp(−E) over 2ⁿ states is not known; use `energy`.")
    sample = Refused("it recalls patterns instead of drawing them; use `recall`.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Store the rows of X; a pattern of weight w is stored as if it stood there w times, of weight 0 not at all."""
        self._forget()
        self._check_arguments()
        patterns = self._states(X, reset=True)
        given = as_weights(sample_weight, patterns)
        times = np.ones(len(patterns)) if given is None else given.numpy()
        patterns, times = patterns[times > 0], times[times > 0]
        count, units = patterns.shape
        if self.rule == "hebb":
            weights = (patterns.T * times) @ patterns / units
        else:
            weights = np.linalg.pinv(patterns) @ patterns
            weights = (weights + weights.T) / 2  # a projection, but for rounding
        np.fill_diagonal(weights, 0.0)
        self.weights_, self.n_patterns_, self.load_ = weights, count, count / units
        return self

    def recall(
        self, X: Any, steps: int | None = None, order: Order = "asynchronous", random_state: Any = None
    ) -> np.ndarray:
        """Where each row of X comes to rest: (m, n) of −1 and +1.

        In one step every unit is updated once: one after another in a random order ("asynchronous"), or all at once
        ("synchronous"), which may end in turning between two states. None takes as many steps as it needs. A unit whose
        input is 0 stays as it is.
        """
        if order not in ("asynchronous", "synchronous"):
            raise SpecError(f'order={order!r} is not known; use "asynchronous" or "synchronous".')
        if steps is not None and (not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1):
            raise SpecError(f"steps={steps!r} must be a positive integer, or None for as many as it takes.")
        self._check_fitted()
        units = np.ascontiguousarray(self._states(X).T)  # (n, m): the same unit of all rows lies together
        if order == "synchronous":
            return self._together(units, steps).T.astype(np.int64)
        random = np.random.default_rng(self._seed(random_state))
        return self._one_by_one(units, steps, random).T.astype(np.int64)

    def predict(self, X: Any) -> np.ndarray:
        """What `recall` finds."""
        return self.recall(X)

    def energy(self, X: Any) -> np.ndarray:
        """E(x) = −½ xᵀWx of each row."""
        self._check_fitted()
        states = self._states(X)
        return -0.5 * ((states @ self.weights_) * states).sum(1)

    def _one_by_one(self, units: np.ndarray, steps: int | None, random: np.random.Generator) -> np.ndarray:
        """Each flip lowers the energy by more than rounding can raise it, so this ends."""
        field, tie, done = self.weights_ @ units, self._tie(), 0
        moving = True
        while moving and (steps is None or done < steps):
            moving, done = False, done + 1
            for unit in random.permutation(len(units)):
                wrong = np.flatnonzero(units[unit] * field[unit] < -tie)
                if len(wrong):
                    units[unit, wrong] *= -1
                    field[:, wrong] += np.outer(self.weights_[unit], 2 * units[unit, wrong])
                    moving = True
        return units

    def _together(self, units: np.ndarray, steps: int | None) -> np.ndarray:
        """With symmetric weights this comes to rest or turns between two states (Goles and Olivos, 1981)."""
        tie, before, done = self._tie(), units, 0
        while steps is None or done < steps:
            field = self.weights_ @ units
            after = np.where(np.abs(field) > tie, np.sign(field), units)
            if np.array_equal(after, units):
                break
            if steps is None and done > 0 and np.array_equal(after, before):
                turning = int((after != units).any(0).sum())
                warnings.warn(
                    f"{turning} of {units.shape[1]} rows oscillate between two states, as synchronous updates may; "
                    'use order="asynchronous".',
                    LikelyWarning,
                    stacklevel=3,
                )
                break
            before, units, done = units, after, done + 1
        return units

    def _check_arguments(self) -> None:
        if self.rule not in RULES:
            raise SpecError(f'Hopfield(rule={self.rule!r}): rule must be "hebb" or "pseudoinverse".')

    def _tie(self) -> float:
        return TIE * float(np.abs(self.weights_).sum(1).max())

    def _states(self, X: Any, *, reset: bool = False) -> np.ndarray:
        rows = as_rows(self, X, reset=reset)
        if rows.ndim != 2:
            raise DataError(f"X has shape {tuple(rows.shape)}; Hopfield needs one pattern for each row: (m, n).")
        states = 2.0 * rows.double().numpy() - 1 if rows.dtype == torch.bool else rows.double().numpy().copy()
        strange = np.argwhere(np.abs(states) != 1)
        if len(strange):
            row, column = strange[0]
            hint = " For 0 and 1, give 2 * X - 1 or booleans." if np.isin(states, (0, 1)).all() else ""
            raise DataError(
                f"X has {states[row, column]:g} at row {row}, column {column}; Hopfield needs −1 and +1.{hint}"
            )
        return states
