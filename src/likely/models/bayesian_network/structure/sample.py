"""Complete rows of discrete variables, and what is counted in them, compiled.

    log-likelihood   Σⱼₖ Nⱼₖ log Nⱼₖ / Nⱼ
    BDeu             Σⱼ log Γ(α/q) / Γ(α/q + Nⱼ) + Σⱼₖ log Γ(α/qr + Nⱼₖ) / Γ(α/qr)
    G²               2 Σ N(x, y, z) log N(x, y, z) N(z) / N(x, z) N(y, z)

Nⱼₖ rows have state k (of r) and parents in state j (of q).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

__all__ = ["Sample"]

DENSE = 1 << 22
"""Entries up to which a table is counted whole; of a larger one only the states of the parents that were seen."""


@dataclass(frozen=True)
class Sample:
    """Rows of codes as (variables, rows), each with its weight, and the number of states of each variable.

    >>> sample = Sample.of(["a", "b"], np.array([[0, 0], [1, 1], [1, 1]]), np.ones(3), [2, 2])
    >>> sample.weights  # equal rows are counted together
    array([1., 2.])
    """

    names: tuple[str, ...]
    codes: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def of(names: Sequence[str], codes: np.ndarray, weights: np.ndarray, sizes: Sequence[int]) -> Sample:
        """Rows (n, variables) of codes, each different one once where that is quickly found."""
        used = weights > 0
        codes, weights = codes[used], weights[used]
        if math.prod(int(size) for size in sizes) < 2**62:
            key = np.ravel_multi_index(tuple(codes.T), tuple(sizes))
            _, first, which = np.unique(key, return_index=True, return_inverse=True)
            codes, weights = codes[first], np.bincount(which.reshape(-1), weights)
        columns = np.ascontiguousarray(codes.T.astype(np.int32))
        return Sample(tuple(names), columns, weights.astype(np.float64), np.asarray(sizes, np.int64))

    @property
    def total(self) -> float:
        """How many rows there are, by weight."""
        return float(self.weights.sum())

    def log_likelihood(self, child: int, parents: Sequence[int]) -> float:
        """The largest log-likelihood of a variable given its parents, over all tables."""
        return float(_log_likelihood(self._counts(child, parents)))

    def bdeu(self, child: int, parents: Sequence[int], rows: float) -> float:
        """log p(the column of a variable | its parents), with `rows` prior rows spread over its table."""
        entries = self.states_of(parents)
        return float(_bdeu(self._counts(child, parents), rows / entries, rows / entries / int(self.sizes[child])))

    def states_of(self, variables: Sequence[int]) -> float:
        """The number of joint states of some variables."""
        return float(math.prod(int(self.sizes[variable]) for variable in variables))

    def g_squared(self, first: int, second: int, given: Sequence[int]) -> tuple[float, float]:
        """G² of independence of two variables given others, and its degrees of freedom.

        States that were not seen with a state of the others do not count as free.
        """
        own = int(self.sizes[first]) * int(self.sizes[second])
        index, entries = self._index(given, own)
        sizes = self.sizes[first], self.sizes[second]
        told = _g_squared(index, entries, self.codes[first], self.codes[second], *sizes, self.weights)
        return max(float(told[0]), 0.0), float(told[1])  # where independence is exact, rounding may leave less than 0

    def mutual_information(self) -> np.ndarray:
        """I(x; y) of all pairs, in nats."""
        information = np.zeros((len(self.codes), len(self.codes)))
        for variable in range(len(self.codes)):
            _mutual_information(self.codes, self.weights, self.sizes, variable, information)
        return information

    def _counts(self, child: int, parents: Sequence[int]) -> np.ndarray:
        index, entries = self._index(parents, int(self.sizes[child]))
        return np.asarray(_tally(index, entries, self.codes[child], int(self.sizes[child]), self.weights))

    def _index(self, variables: Sequence[int], states: int) -> tuple[np.ndarray, int]:
        """The joint state of some variables in each row; only those that were seen are told apart if there are many."""
        entries = self.states_of(variables)
        if entries * states <= DENSE:
            return _joint(self.codes, self.sizes, np.array(variables, np.int64)), int(entries)
        index = np.zeros(self.codes.shape[1], np.int64)
        for variable in variables:
            index = np.unique(index * self.sizes[variable] + self.codes[variable], return_inverse=True)[1].reshape(-1)
        return index, int(index.max()) + 1


@njit(cache=True)
def _joint(codes: np.ndarray, sizes: np.ndarray, variables: np.ndarray) -> np.ndarray:
    index = np.zeros(codes.shape[1], np.int64)
    for variable in variables:
        own, size = codes[variable], sizes[variable]
        for row in range(len(index)):
            index[row] = index[row] * size + own[row]
    return index


@njit(cache=True)
def _tally(index: np.ndarray, entries: int, own: np.ndarray, states: int, weights: np.ndarray) -> np.ndarray:
    counts = np.zeros((entries, states))
    for row in range(len(index)):
        counts[index[row], own[row]] += weights[row]
    return counts


@njit(cache=True)
def _log_likelihood(counts: np.ndarray) -> float:
    total = 0.0
    for row in counts:
        whole = row.sum()
        for count in row:
            if count > 0:
                total += count * math.log(count / whole)
    return total


@njit(cache=True)
def _bdeu(counts: np.ndarray, per_row: float, per_entry: float) -> float:
    total, row_constant, entry_constant = 0.0, math.lgamma(per_row), math.lgamma(per_entry)
    for row in counts:
        whole = row.sum()
        if whole > 0:
            total += row_constant - math.lgamma(per_row + whole)
            for count in row:
                if count > 0:
                    total += math.lgamma(per_entry + count) - entry_constant
    return total


@njit(cache=True)
def _g_squared(
    index: np.ndarray,
    entries: int,
    first: np.ndarray,
    second: np.ndarray,
    rows: int,
    columns: int,
    weights: np.ndarray,
) -> tuple[float, float]:
    counts = np.zeros((entries, rows, columns))
    for row in range(len(index)):
        counts[index[row], first[row], second[row]] += weights[row]
    total, freedom = 0.0, 0.0
    for table in counts:
        across, down = table.sum(1), table.sum(0)
        whole = across.sum()
        if whole <= 0:
            continue
        freedom += max((across > 0).sum() - 1, 0) * max((down > 0).sum() - 1, 0)
        for i in range(rows):
            for j in range(columns):
                if table[i, j] > 0:
                    total += table[i, j] * math.log(table[i, j] * whole / (across[i] * down[j]))
    return 2 * total, freedom


@njit(cache=True)
def _mutual_information(
    codes: np.ndarray, weights: np.ndarray, sizes: np.ndarray, one: int, information: np.ndarray
) -> None:
    """Of one variable with all before it, into the table of all pairs."""
    total = weights.sum()
    for other in range(one):
        table = np.zeros((sizes[one], sizes[other]))
        for row in range(len(weights)):
            table[codes[one, row], codes[other, row]] += weights[row]
        across, down, gain = table.sum(1), table.sum(0), 0.0
        for i in range(sizes[one]):
            for j in range(sizes[other]):
                if table[i, j] > 0:
                    gain += table[i, j] * math.log(table[i, j] * total / (across[i] * down[j]))
        information[one, other] = information[other, one] = gain / total
