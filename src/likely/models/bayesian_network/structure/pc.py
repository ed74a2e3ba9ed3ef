"""PC: edges are what no test of conditional independence can explain away; colliders give them their directions.

    G² = 2 Σ N(x, y, z) log N(x, y, z) N(z) / N(x, z) N(y, z)  ~  χ²        if x and y are independent given z

Two variables stay joined if they depend on each other given every set of neighbours. x – z – y with x and y apart is a
collider x → z ← y if z was not in the set that parted them; other arrows follow, since no collider may be new.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from ....core.spec import is_integer, require
from .base import Edge, Limits, Structure
from .equivalence import as_dag, complete
from .sample import Sample

__all__ = ["PC"]

ROWS = 10
"""Rows for each free number of a table, below which its test is not trusted."""


class PC(Structure):
    """Tests of conditional independence, of more and more conditions, then directions from colliders.

    Parameters
    ----------
    alpha : two variables count as independent if the p-value of G² is above this.
    max_given : the most variables that a test conditions on; None for no limit.
    required, forbidden : edges (parent, child) that must be there, or may not.

    Directions that data cannot tell are chosen so that no collider arises; `structural_hamming_distance` does not look
    at them. The order of the columns does not matter for which variables are joined.

    >>> import numpy as np
    >>> from likely import BayesianNetwork
    >>> rng = np.random.default_rng(0)
    >>> rain, sprinkler = rng.random((2, 2000)) < 0.5
    >>> rows = {"rain": rain, "sprinkler": sprinkler, "wet": (rain | sprinkler) ^ (rng.random(2000) < 0.1)}
    >>> BayesianNetwork(structure=PC(alpha=0.001)).fit(rows).factorisation()
    'p(rain) p(sprinkler) p(wet | rain, sprinkler)'
    """

    alpha: float = 0.01
    max_given: int | None = None
    required: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()

    def validate(self) -> None:
        super().validate()
        require(0 < self.alpha < 1, self, "alpha", "a number strictly between 0 and 1")
        most = self.max_given
        require(most is None or is_integer(most, 0), self, "max_given", "an integer from 0, or None")

    def learn(self, sample: Sample, random: np.random.Generator) -> list[Edge]:
        limits = self.limits(sample.names)
        joined, parted = self._skeleton(sample, limits)
        return as_dag(complete(_directed(joined, parted, limits)), limits.required, limits.allowed)

    def _skeleton(self, sample: Sample, limits: Limits) -> tuple[np.ndarray, dict[Edge, Parting]]:
        """Which pairs stay joined, and for the others the set that parted them."""
        fixed = limits.required | limits.required.T
        joined = limits.allowed | limits.allowed.T | fixed
        parted: dict[Edge, Parting] = {}
        most = len(joined) - 2 if self.max_given is None else self.max_given
        for size in range(most + 1):
            before = joined.copy()  # so that a pair is judged by the same neighbours, whichever comes first
            if not (before.sum(1) > size).any():
                break
            for first, second in np.argwhere(np.triu(before & ~fixed, 1)):
                parting = self._parting(sample, int(first), int(second), before, size)
                if parting is not None:
                    joined[first, second] = joined[second, first] = False
                    parted[int(first), int(second)] = parting
        return joined, parted

    def _parting(self, sample: Sample, first: int, second: int, joined: np.ndarray, size: int) -> Parting | None:
        """The set of neighbours of either that makes two variables independent most clearly, of those that do.

        A test without freedom, or with too few rows for its table, tells nothing: the pair stays joined.
        """
        tried: set[tuple[int, ...]] = set()
        best: Parting | None = None
        own = float((sample.sizes[first] - 1) * (sample.sizes[second] - 1))
        for one, other in ((first, second), (second, first)):
            around = [int(variable) for variable in np.flatnonzero(joined[one]) if variable != other]
            for given in combinations(around, size):
                if given in tried or sample.total < ROWS * own * sample.states_of(given):
                    continue
                tried.add(given)
                squared, freedom = sample.g_squared(first, second, given)
                chance = float(chdtrc(freedom, squared)) if freedom > 0 else 0.0
                if chance > (self.alpha if best is None else best.chance):
                    best = Parting(frozenset(given), chance)
        return best


class Parting(NamedTuple):
    """The variables given which two others are independent, and the p-value of that."""

    given: frozenset[int]
    chance: float


def _directed(joined: np.ndarray, parted: dict[Edge, Parting], limits: Limits) -> np.ndarray:
    """Marks with the arrows of colliders, the surest first, and of edges that may point one way alone."""
    marks = joined.copy()
    one_way = joined & limits.allowed & ~limits.allowed.T | limits.required
    marks &= ~one_way.T
    for (first, second), parting in sorted(parted.items(), key=lambda item: -item[1].chance):
        for middle in np.flatnonzero(joined[first] & joined[second]):
            if middle not in parting.given:
                turned = marks.copy()
                turned[middle, [first, second]] = False
                sound = marks[first, middle] and marks[second, middle] and not _has_circle(turned & ~turned.T)
                marks = turned if sound else marks
    return marks


def _has_circle(arrow: np.ndarray) -> bool:
    """Whether arrows lead back to where they began: taking away what none of them enters leaves something."""
    left = np.ones(len(arrow), bool)
    while left.any():
        free = left & ~(arrow[left]).any(0)
        if not free.any():
            return True
        left &= ~free
    return False
