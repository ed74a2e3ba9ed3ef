"""Interpolated modified Kneser–Ney smoothing of n-grams: a language model by counting.

    pₖ(w | h) = max(c(hw) − D(c(hw)), 0) / c(h) + γ(h) pₖ₋₁(w | h′),      γ(h) = Σ_w min(D, c(hw)) / c(h),   p₋₁ = 1/W

h are the last k tokens and h′ all but the oldest of them. c counts n-grams at the longest h. At shorter ones it counts
the different tokens that come before hw: what follows many different beginnings is more probable after a new one.
D of counts 1, 2 and 3 or more is D₁ = 1 − 2Y n₂/n₁, D₂ = 2 − 3Y n₃/n₂, D₃ = 3 − 4Y n₄/n₃ with Y = n₁/(n₁ + 2n₂) and
nᵢ the n-grams that are there i times. A context that was never seen leaves the word to the shorter one.

Contexts are a tree that grows into the past: a context of k tokens is the number of the one of its last k − 1, and one
token more. All levels are sorted arrays of integers, so that counting is sorting and asking is binary search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ...core.declared import NOT_NEGATIVE, POSITIVE, Array, check_arrays
from ...core.errors import ModelFileError
from .texts import sums

__all__ = ["KneserNey", "discounts"]

SLACK = 1e-6
BLOCK = 1 << 21
"""Positions whose probabilities are looked up at once, and numbers of distributions made at once."""


@dataclass(frozen=True)
class Level:
    """All contexts of one length: their keys, what each leaves to shorter ones, and the mass of what follows them."""

    contexts: np.ndarray
    """(shorter context)·symbols + (its token before), sorted; the number of a context is its place here."""
    backoff: np.ndarray
    grams: np.ndarray
    """context·symbols + token, sorted."""
    mass: np.ndarray


class KneserNey:
    """p(w | last order − 1 tokens) of sequences that begin with the boundary, the last of `symbols`.

    `outputs` of the symbols may follow: all of them, or all but the boundary.
    """

    def __init__(self, levels: list[Level], symbols: int, outputs: int) -> None:
        self.levels, self.symbols, self.outputs = levels, symbols, outputs

    device = torch.device("cpu")

    @property
    def order(self) -> int:
        """How long an n-gram is."""
        return len(self.levels)

    @classmethod
    def fit(
        cls, order: int, values: np.ndarray, offsets: np.ndarray, symbols: int, outputs: int, weight: np.ndarray
    ) -> KneserNey:
        """Count sequences that lie one after the other, each after a boundary; `weight` is one per sequence."""
        positions, starts = _positions(offsets)
        contexts, ids = [np.zeros(1, np.int64)], np.zeros(len(positions), np.int64)
        for k in range(1, order):
            keys, ids = np.unique(ids * symbols + values[np.maximum(positions - k, starts)], return_inverse=True)
            contexts.append(keys)
        grams, place = np.unique(ids * symbols + values[positions], return_inverse=True)
        counts = np.bincount(place, np.repeat(weight, np.diff(offsets) - 1), len(grams))
        levels = []
        for k in reversed(range(order)):
            levels.append(_smoothed(contexts[k], grams, counts, symbols))
            if k:
                grams, counts = _continuations(contexts, k, grams, counts, symbols)
        return cls(levels[::-1], symbols, outputs)

    # --- questions ----------------------------------------------------------------------------------------------
    def log_prob(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Σ log p of all symbols after the boundary, of each sequence: (n,)."""
        return sums(np.log(self.probabilities(values, offsets)[0]), offsets)

    def probabilities(self, values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p of each symbol after the boundaries, and how many of the symbols before it were seen together."""
        positions, starts = _positions(offsets)
        p, known = np.empty(len(positions)), np.empty(len(positions), np.int64)
        for first in range(0, len(positions), BLOCK):
            part = slice(first, first + BLOCK)
            p[part], known[part] = self._probability(values, positions[part], starts[part])
        return p, known

    def _probability(
        self, values: np.ndarray, positions: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """p of what stands at some positions, given what comes before it, and how much of that is known."""
        p, rows = np.full(len(positions), 1 / self.outputs), np.arange(len(positions))
        ids, depth = np.zeros_like(rows), np.zeros_like(rows)
        for k, level in enumerate(self.levels):
            if k:
                past = values[np.maximum(positions - k, starts)]
                seen, ids = _find(level.contexts, ids * self.symbols + past)
                rows, positions, starts, ids = (part[seen] for part in (rows, positions, starts, ids))
            known, place = _find(level.grams, ids * self.symbols + values[positions])
            p[rows] = level.backoff[ids] * p[rows] + np.where(known, level.mass[place], 0.0)
            depth[rows] = k
        return p, depth

    def following(self, values: np.ndarray, offsets: np.ndarray) -> Tensor:
        """log p of all that may come after each sequence, (n, outputs)."""
        return torch.from_numpy(self.distribution(self.recent(values, offsets).numpy())[0]).log()

    def recent(self, values: np.ndarray, offsets: np.ndarray) -> Tensor:
        """The last order − 1 symbols of each sequence, boundaries before it."""
        state, size = self.start(len(offsets) - 1), self.order - 1
        for row, (first, last) in enumerate(pairwise(offsets.tolist())):
            own = torch.from_numpy(values[first:last][-size:] if size else values[:0])
            state[row, size - len(own) :] = own
        return state

    def distribution(self, recent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p of all that may follow the last order − 1 symbols of each row, and how many of these are known."""
        out, known = np.empty((len(recent), self.outputs)), np.empty(len(recent), np.int64)
        step = max(1, BLOCK // self.outputs)
        for first in range(0, len(recent), step):
            part = slice(first, first + step)
            out[part], known[part] = self._distribution(recent[part])
        return out, known

    def _distribution(self, recent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, rows = np.full((len(recent), self.outputs), 1 / self.outputs), np.arange(len(recent))
        ids, depth = np.zeros(len(recent), np.int64), np.zeros(len(recent), np.int64)
        for k, level in enumerate(self.levels):
            if k:
                seen, ids = _find(level.contexts, ids * self.symbols + recent[rows, -k])
                rows, ids = rows[seen], ids[seen]
            first, last = (np.searchsorted(level.grams, (ids + more) * self.symbols) for more in (0, 1))
            counts = last - first
            owner = np.repeat(np.arange(len(rows)), counts)
            place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
            p[rows] *= level.backoff[ids, None]
            p[rows[owner], level.grams[place] % self.symbols] += level.mass[place]
            depth[rows] = k
        return p, depth

    # --- step by step -------------------------------------------------------------------------------------------
    def start(self, rows: int) -> Tensor:
        """The symbols before the first step of so many sequences: boundaries, (n, order − 1)."""
        return torch.full((rows, self.order - 1), self.symbols - 1)

    def step(self, state: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """log p of what may follow these tokens (n,), as (n, outputs), and the symbols that are remembered."""
        state = self.remembered(state, tokens)
        return torch.from_numpy(self.distribution(state.numpy())[0]).log(), state

    def remembered(self, state: Tensor, tokens: Tensor) -> Tensor:
        """The last order − 1 symbols of each row once these tokens (n,) are read."""
        return torch.cat([state, tokens.unsqueeze(1)], 1)[:, 1:] if self.order > 1 else state

    # --- files --------------------------------------------------------------------------------------------------
    def tensors(self) -> dict[str, Tensor]:
        """All levels, one after the other."""
        sizes = np.array([[len(level.contexts), len(level.grams)] for level in self.levels])
        parts = {name: [getattr(level, name) for level in self.levels] for name in Level.__dataclass_fields__}
        arrays = {name: np.concatenate(own) for name, own in parts.items()} | {"sizes": sizes}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    @classmethod
    def restore(cls, tensors: Mapping[str, Tensor], order: int, symbols: int, outputs: int) -> KneserNey:
        """The inverse of `tensors`; a `ModelFileError` for what no `fit` gives."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        if strange := sorted(set(arrays) - set(DECLARED)):
            raise ModelFileError(f"The file does not fit NGram: it has {strange[:3]}.")
        check_arrays(DECLARED, arrays, {"N": order}, "NGram")
        sizes = arrays["sizes"]
        wanted = {"contexts": sizes[:, 0], "backoff": sizes[:, 0], "grams": sizes[:, 1], "mass": sizes[:, 1]}
        if (sizes < 1).any() or any(own.sum() != len(arrays[name]) for name, own in wanted.items()):
            raise ModelFileError("The file does not fit NGram: its levels have other sizes than its arrays.")
        cut = {name: np.split(arrays[name], np.cumsum(own)[:-1]) for name, own in wanted.items()}
        levels = [Level(**{name: own[k] for name, own in cut.items()}) for k in range(order)]
        for k, level in enumerate(levels):
            _check_level(level, levels[k - 1] if k else None, symbols, outputs)
        return cls(levels, symbols, outputs)


DECLARED: dict[str, Array] = {
    "sizes": Array("N 2", dtype="int64"),
    "contexts": Array("C", dtype="int64"),
    "backoff": Array("C", POSITIVE),
    "grams": Array("G", dtype="int64"),
    "mass": Array("G", NOT_NEGATIVE),
}


def discounts(counts: np.ndarray) -> np.ndarray:
    """D of counts 0, 1, 2 and 3 or more, from how many n-grams are there once, twice, three and four times.

    Where some of these are none, or D is not between 0 and the count, it is half of it. D₀ is 0.

    >>> discounts(np.array([1, 1, 1, 1, 2, 2, 3, 4])).round(3)
    array([0.  , 0.5 , 1.25, 1.  ])
    """
    number = np.minimum(np.ceil(counts).astype(np.int64), 5)
    n = np.bincount(number, minlength=6).astype(float)
    half = np.arange(4) / 2
    if (n[1:5] == 0).any():
        return half
    ratio = n[1] / (n[1] + 2 * n[2])
    exact = np.array([0.0, *(i - (i + 1) * ratio * n[i + 1] / n[i] for i in (1, 2, 3))])
    return np.where((exact > 0) & (exact <= np.arange(4)), exact, half)


def _smoothed(contexts: np.ndarray, grams: np.ndarray, counts: np.ndarray, symbols: int) -> Level:
    """Counts as what is left of them after discounting, and what that gives to shorter contexts."""
    owner = grams // symbols
    total = np.bincount(owner, counts, len(contexts))
    discount = np.minimum(discounts(counts)[np.minimum(np.ceil(counts).astype(np.int64), 3)], counts)
    mass = (counts - discount) / total[owner]
    return Level(contexts, np.bincount(owner, discount, len(contexts)) / total, grams, mass)


def _continuations(
    contexts: list[np.ndarray], k: int, grams: np.ndarray, counts: np.ndarray, symbols: int
) -> tuple[np.ndarray, np.ndarray]:
    """The n-grams of the next shorter contexts, and how many different tokens come before each.

    Before the boundary there is nothing to count: n-grams that begin with it keep their own counts.
    """
    owner, token = np.divmod(grams, symbols)
    shorter = contexts[k][owner] // symbols
    begins = contexts[k - 1][shorter] % symbols == symbols - 1 if k > 1 else np.zeros(len(grams), bool)
    keys, place = np.unique(shorter * symbols + token, return_inverse=True)
    return keys, np.bincount(place, np.where(begins, counts, 1.0), len(keys))


def _positions(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the symbols after the boundaries are, and where the sequence of each starts."""
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    positions = np.arange(len(starts))
    inner = positions != starts
    return positions[inner], starts[inner]


def _find(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether keys are among sorted ones, and where."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[place] == wanted, place


def _check_level(level: Level, shorter: Level | None, symbols: int, outputs: int) -> None:
    """Raise unless a level is what a fit gives: indices that are there, and probabilities that sum to 1."""
    above = 1 if shorter is None else len(shorter.contexts) * symbols
    count = len(level.contexts)
    rising = all(bool((np.diff(keys) > 0).all()) for keys in (level.contexts, level.grams))
    inside = level.contexts[0] >= 0 and level.contexts[-1] < above
    inside = inside and level.grams[0] >= 0 and level.grams[-1] < count * symbols
    if not rising or not inside or bool((level.grams % symbols >= outputs).any()):
        raise ModelFileError("The file does not fit NGram: its n-grams are not sorted, or are not of its tokens.")
    total = np.bincount(level.grams // symbols, level.mass, count) + level.backoff
    if not bool((np.abs(total - 1) <= SLACK).all()):
        raise ModelFileError("The file does not fit NGram: its probabilities do not sum to 1.")
